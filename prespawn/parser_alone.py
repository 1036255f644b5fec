"""PyYAML's C parser without the rest of the package, for the installed command alone.

It reads one small file, and to execute the package for that costs more than the decision (resolver, constructors,
``datetime``, ``enum`` and some forty patterns, none of which the parser uses). All that the parser's module asks of the
package are its classes. So in a process in which no other code than ours runs (``prespawn.own_process``) the modules
that hold base errors, tokens, events and nodes are executed as they are, and each other one is stood in for by its one
error class. Whoever asks ``yaml`` for anything afterwards gets the whole package, executed then, and the parser raises
its errors. Parser and events are the very same classes; an installation in which the parser asks for more is imported
in the ordinary way, and so is PyYAML wherever this package is a library.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ERRORS = {
    "reader": "ReaderError", "scanner": "ScannerError", "parser": "ParserError", "composer": "ComposerError",
    "constructor": "ConstructorError", "emitter": "EmitterError", "serializer": "SerializerError",
    "representer": "RepresenterError",
}  # fmt: skip


class _Package(type(sys)):  # type: ignore[misc]  # the class of modules
    """The package, found and not executed yet."""

    def __getattr__(self, name: str) -> Any:
        self.__class__ = type(sys)  # type: ignore[assignment]  # from here on an ordinary module
        self.__spec__.loader.exec_module(self)
        for module, error in _ERRORS.items():
            setattr(self._yaml, error, getattr(sys.modules[f"yaml.{module}"], error))
        return getattr(self, name)


def provide_parser_alone() -> None:
    """Make ``yaml._yaml`` importable without the rest; leave nothing behind where that is not to be had."""
    if "yaml" in sys.modules:
        return
    from _frozen_importlib_external import PathFinder  # what `importlib.machinery` gives on

    spec = PathFinder.find_spec("yaml")
    if spec is None or spec.submodule_search_locations is None:
        return
    package = _Package("yaml")
    package.__spec__, package.__loader__, package.__package__ = spec, spec.loader, "yaml"
    package.__path__, package.__file__ = spec.submodule_search_locations, spec.origin
    sys.modules["yaml"] = package
    try:
        _load_parser(package)
    except (ImportError, AttributeError):
        for name in [name for name in sys.modules if name.partition(".")[0] == "yaml"]:
            del sys.modules[name]


def _base(name: str, error: Any) -> tuple[type, ...]:
    """Return what an error class derives from; the reader's is the only one with other arguments, given by place."""
    if name != "reader":
        return (error.MarkedYAMLError,)

    class Unreadable(error.YAMLError):  # type: ignore[misc]
        def __init__(self, name: object, position: int, character: object, encoding: object, reason: object) -> None:
            self.name, self.position, self.character = name, position, character
            self.encoding, self.reason = encoding, reason

    return (Unreadable,)


def _load_parser(package: Any) -> None:
    import yaml.error
    import yaml.events
    import yaml.nodes
    import yaml.tokens

    for name, error in _ERRORS.items():
        stand_in: Any = type(sys)(name)
        setattr(stand_in, error, type(error, _base(name, yaml.error), {}))
        setattr(package, name, stand_in)
    import yaml._yaml

    for name in _ERRORS:
        delattr(package, name)
