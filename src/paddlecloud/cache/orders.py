"""What every engine makes of an order: which paths it is about, all inside their roots, and the copying itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paddlecloud.api.folders import ANYWHERE, FolderRule
from paddlecloud.cache import warmup
from paddlecloud.cache.confine import Confined, relative
from paddlecloud.cache.errors import BadOptions, WorkFailed
from paddlecloud.cache.manifest import SampleManifest
from paddlecloud.cache.options import Options, PathOptions, SyncOptions, WarmupOptions
from paddlecloud.cache.progress import Task
from paddlecloud.cache.sync.copier import Copier
from paddlecloud.cache.sync.foreign import sync_with_juicefs
from paddlecloud.storage import uri
from paddlecloud.storage.credentials import Credentials
from paddlecloud.storage.sources import open_source


class Orders:
    """`data` is the folder of the set, `folders` are those of the node's cache."""

    def __init__(
        self,
        data: str,
        folders: Sequence[str],
        manifest: SampleManifest,
        environment: Mapping[str, str],
        limits: FolderRule = ANYWHERE,
    ) -> None:
        self.data = data
        self.folders = list(folders)
        self._manifest = manifest
        self._environment = environment
        self._limits = limits
        self._tree = Confined(data)

    def check(self, kind: str, options: Options) -> None:
        """Whether an order could be carried out at all, as far as its fields say. Raises `BadOptions`."""
        if isinstance(options, SyncOptions):
            self.destination(options)
        elif isinstance(options, WarmupOptions):
            warmup.inner_paths(options, self.data)
        elif kind == "clear":
            self.cleared(options)
        else:
            for path in options.paths:
                if not relative(path, (self.data,))[1]:
                    raise BadOptions(f"path {path!r} is the whole set: name what is to be removed in it")

    def destination(self, options: SyncOptions) -> str:
        """Where a sync goes to, from the folder of the set."""
        return relative(uri.parse(options.destination).path, (self.data,))[1]

    def cleared(self, options: PathOptions) -> list[tuple[str, str]]:
        """Folders of the cache to clear, and paths in them; "" means all of a folder."""
        if not options.paths:
            return [(folder, "") for folder in self.folders]
        return [relative(path.removesuffix("/*"), self.folders) for path in options.paths]

    def copy(self, options: SyncOptions, credentials: Credentials, task: Task) -> bool:
        """Carry out a sync; False when another program did, and the manifest knows nothing of it yet."""
        location = uri.parse(options.source)
        source = open_source(
            location, credentials, environment=self._environment, https=not options.no_https, limits=self._limits
        )
        if source is None:
            sync_with_juicefs(options, location, credentials, task, environment=self._environment)
            return False
        name = location.path.rstrip("/").rpartition("/")[2]
        inner = self.destination(options)
        Copier(source, self.data, inner, options, self._manifest, task, single_name=name).run()
        return True

    def remove(self, options: PathOptions, task: Task) -> None:
        """Carry out an rmr. Raises `WorkFailed` at the first path that cannot be removed."""
        for path in options.paths:
            task.check()
            _, inner = relative(path, (self.data,))
            try:
                files, size = self._tree.measure(inner)
                self._tree.remove(inner)
            except OSError as error:
                raise WorkFailed(f"{path!r} cannot be removed: {error.strerror}") from error
            finally:
                self._manifest.remove_below(inner)
            task.progress.report(files=files, size=size)
