"""What tests share: short ways to drive one machine, alphabets of inputs, a model server."""
