"""What may happen on the stage: one method for each thing that server, wire, caller or clock do."""

from attrs import evolve

from relist import effects as e
from relist import inputs as i
from relist.session import deadline_ms
from relist.values import CHANNEL_OF, CHANNELS, KINDS, Channel, Kind, LinkPhase, Scope, Wire
from support.one import LEGACY, METHOD_NOT_FOUND, MODERN
from support.stage import Asked, Frame, Stage


class Acts(Stage):
    """Acts on the stage. Whether they are possible now is for the caller to know."""

    # --- requests and answers ---------------------------------------------------------------------

    def serve(self, asked: Asked) -> None:
        """The server answers now; the answer is on its way."""
        self.asked.remove(asked)
        heard = self._answer(asked)
        if heard is not None:
            self.wire.append(Frame(asked.epoch, heard))

    def answer(self, asked: Asked) -> None:
        """The server answers, and the answer arrives."""
        before = len(self.wire)
        self.serve(asked)
        self._arrive(self.wire[before:])

    def _arrive(self, news: list[Frame]) -> None:
        """These arrive now; over a pipe after all that went before them."""
        if news and self.setting.wire is Wire.PIPE:
            epoch = self.session.link.epoch
            news = [frame for frame in self.wire if frame.epoch == epoch]
        for frame in news:
            self.deliver(frame)

    def again(self, frame: Frame) -> None:
        """An answer that has arrived arrives once more."""
        self.hear(evolve(frame.heard, now_ms=self.now_ms))

    def run(self) -> None:
        """For a while all requests are answered, all answers arrive, and links come back."""
        for _ in range(12):
            if self.wire:
                self.deliver(self._deliverable()[0])
            elif self.asked:
                self.serve(self.asked[0])
            elif self.session.link.phase is LinkPhase.WAITING:
                self.wake()

    def _answer(self, asked: Asked) -> i.PeerInput | None:
        server, effect = self.server, asked.effect
        match effect:
            case e.OpenTransport():
                return i.TransportOpened(effect.epoch, 0) if asked.alive else None
            case e.RequestPage():
                if server.chatty:
                    self.tell(CHANNEL_OF[effect.kind])
                return server.answer(effect, 0)
            case e.RequestDiscover() if server.modern:
                return i.DiscoverAnswered(effect.serial, (MODERN,), server.capabilities(), 0)
            case e.RequestDiscover():
                return i.DiscoverFailed(effect.serial, METHOD_NOT_FOUND, 0)
            case e.RequestInitialize():
                return i.InitializeAnswered(effect.serial, LEGACY, server.capabilities(), 0)
            case e.OpenListen():
                if not asked.alive:
                    return None
                server.pushing = server.capabilities().channels & effect.topics
                server.subscription = effect.serial
                return i.PushOpened(effect.serial, server.pushing, 0)
            case e.OpenUpdates():
                if not asked.alive:
                    return None
                server.updates = effect.serial
                return i.UpdatesOpened(effect.serial, effect.uris, 0)
            case e.RequestSubscribe() | e.RequestUnsubscribe():
                return i.SubscribeAnswered(effect.serial, None, 0)

    def _deliverable(self) -> list[Frame]:
        """A pipe keeps order; what is left over from an earlier one comes when it comes."""
        if self.setting.wire is Wire.HTTP:
            return list(self.wire)
        epoch = self.session.link.epoch
        now = [frame for frame in self.wire if frame.epoch == epoch]
        return [*now[:1], *(frame for frame in self.wire if frame.epoch != epoch)]

    def deliver(self, frame: Frame) -> None:
        """It arrives."""
        self.wire.remove(frame)
        if not isinstance(frame.heard, i.NoticeHeard):
            self.seen = [*self.seen[-2:], frame]
        self.hear(evolve(frame.heard, now_ms=self.now_ms))

    # --- failing ----------------------------------------------------------------------------------

    def fail(self, asked: Asked, heard: i.PeerInput) -> None:
        """The request fails, and the client learns of it when the frame arrives."""
        self.asked.remove(asked)
        self.wire.append(Frame(asked.epoch, heard))

    # --- what is offered --------------------------------------------------------------------------

    def offer(self, lacks: Kind | None) -> None:
        """From now on the server declares all kinds but this one. Nobody is told."""
        self.server.lacks = lacks

    # --- lists change -----------------------------------------------------------------------------

    def change(self, kind: Kind) -> None:
        """The server's list changes, and those who are covered are told in the same instant."""
        listed = self.server.listed[kind]
        self.server.listed[kind] = evolve(listed, version=listed.version + 1)
        self.tell(CHANNEL_OF[kind])

    def change_all(self) -> None:
        """All four lists change at once."""
        for kind in KINDS:
            self.change(kind)

    def change_scope(self) -> None:
        """Lists become private or public, and all who listen are told."""
        private = self.server.scope is Scope.PRIVATE
        self.server.scope = Scope.PUBLIC if private else Scope.PRIVATE
        for channel in Channel:
            self.tell(channel)

    def turn(self, kind: Kind) -> None:
        """The same entries in another order, which is nothing new, and a notice of it."""
        listed = self.server.listed[kind]
        self.server.listed[kind] = evolve(listed, turned=not listed.turned)
        self.tell(CHANNEL_OF[kind])

    def toggle_endless(self, *kinds: Kind) -> None:
        """From now on these lists have no last page within any bound; or they have one again."""
        for kind in kinds:
            listed = self.server.listed[kind]
            self.server.listed[kind] = evolve(
                listed, endless=not listed.endless, version=listed.version + 1
            )
            self.tell(CHANNEL_OF[kind])

    # --- notices ----------------------------------------------------------------------------------

    def tell(self, channel: Channel) -> None:
        """A notice goes out, if anybody listens."""
        if channel in self.server.pushing:
            notice = i.NoticeHeard(channel, self.server.subscription, 0)
            self.wire.append(Frame(self.session.link.epoch, notice))

    def notice(self, kind: Kind) -> None:
        """A list changes, and the notice of it arrives, if one was sent."""
        before = len(self.wire)
        self.change(kind)
        self._arrive(self.wire[before:])

    def storm(self, channel: Channel) -> None:
        """Many notices of nothing arrive, one after the other."""
        for _ in range(4):
            before = len(self.wire)
            self.tell(channel)
            self._arrive(self.wire[before:])
            self.now_ms += 10

    def stray(self, tag: int | None) -> None:
        """Notices arrive that may have nothing to do with what this client asked for."""
        for channel in CHANNELS:
            self.hear(i.NoticeHeard(channel, tag, self.now_ms))

    def toggle_chatter(self) -> None:
        """From now on each list request makes the server send a notice; or no longer."""
        self.server.chatty = not self.server.chatty

    # --- the connection ---------------------------------------------------------------------------

    def drop(self) -> None:
        """The connection breaks, and the client knows."""
        epoch = self.session.link.epoch
        self.sever(epoch)
        self.hear(i.TransportLost(epoch, self.now_ms))

    def expire(self) -> None:
        """The server forgets the legacy session."""
        epoch = self.session.link.epoch
        self.sever(epoch)
        self.hear(i.SessionExpired(epoch, self.now_ms))

    def reopen(self) -> None:
        """The caller closes the connection, and wants it again."""
        self.hear(i.CloseWanted(self.now_ms))
        self.hear(i.ConnectWanted(self.now_ms))

    def cut(self) -> None:
        """The stream of notices ends; the client learns of it when the frame arrives."""
        serial = self.session.listen.serial
        if self.server.subscription is not None:
            serial = self.server.subscription
        self.server.silence()
        self.wire.append(Frame(self.session.link.epoch, i.PushEnded(serial, None, 0)))

    def cut_updates(self) -> None:
        """The subscription for single resources ends."""
        assert self.server.updates is not None
        ended = i.UpdatesEnded(self.server.updates, None, 0)
        self.server.updates = None
        self.wire.append(Frame(self.session.link.epoch, ended))

    def open_stream(self) -> None:
        """The legacy GET stream stands (again)."""
        self.server.pushing = self.server.capabilities().channels
        self.wire = [f for f in self.wire if not isinstance(f.heard, i.PushEnded)]
        heard = i.PushOpened(self.session.listen.serial, frozenset(Channel), self.now_ms)
        self.hear(heard)

    # --- the caller -------------------------------------------------------------------------------

    def read(self, kind: Kind) -> None:
        """Somebody needs the list."""
        self.hear(i.ReadWanted(kind, self.now_ms))

    def begin_task(self) -> None:
        """A new task begins."""
        self.hear(i.TaskBegan(self.now_ms))

    def verify(self, kind: Kind) -> None:
        """A call waits for the list to be verified."""
        self.hear(i.VerificationWanted(kind, self.now_ms))

    def refresh(self, kind: Kind) -> None:
        """Somebody asks for a new list."""
        self.hear(i.RefreshWanted(kind, self.now_ms))

    def prove(self, kind: Kind, generation: int) -> None:
        """A call planned on this list was rejected in a way that proves it stale."""
        self.hear(i.StalenessProved(kind, generation, self.now_ms))

    def adopt(self, kind: Kind, generation: int) -> None:
        """The host gives its model what is published, in part."""
        self.hear(i.SurfaceAdopted(kind, generation, 0, self.now_ms))

    def subscribe(self, *uris: str) -> None:
        """Somebody wants to hear of these resources, and of no others."""
        self.hear(i.UpdatesWanted(frozenset(uris), self.now_ms))

    def update(self, uri: str, tag: int | None) -> None:
        """News of a resource arrives, perhaps for somebody else."""
        self.hear(i.UpdateHeard(uri, tag, self.now_ms))

    def credentials(self) -> None:
        """New credentials: of the same partition, of another, of the same, of the first again."""
        self.partitions += 1
        self.hear(i.CredentialsChanged("AB"[self.partitions // 2 % 2], self.now_ms))

    # --- time -------------------------------------------------------------------------------------

    def wait(self, ms: int) -> None:
        """Time passes."""
        self.now_ms += ms
        self.hear(i.TimePassed(self.now_ms))

    def wake(self) -> None:
        """Time passes until the session wants to know of it."""
        at_ms = deadline_ms(self.session, self.policy)
        self.wait(0 if at_ms is None else max(0, at_ms - self.now_ms))

    def outlive(self, kind: Kind, expires_at_ms: int) -> None:
        """The lifetime of a list ends, and in that very millisecond somebody needs the list."""
        self.wait(max(0, expires_at_ms - self.now_ms))
        self.read(kind)
