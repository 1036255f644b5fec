"""What ``argv[0]`` leads to, and whose it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from support.facts_world import IS_ROOT, STRANGER, World, area, as_stranger, profile

from prespawn.facts.program import Trees, Worker, program
from prespawn.policy.codec import encode
from prespawn.policy.known import ABSENT
from prespawn.policy.profile import RootRule

if TYPE_CHECKING:
    from collections.abc import Iterator

ELF = "\x7fELF"
HOST = profile(root=RootRule(system="host"), launcher="local")


@pytest.fixture
def world() -> Iterator[World]:
    with area() as top:
        world = World(top)
        for name in ("ws/tool", "ws/.venv/bin/pytest", "py/bin/python9", "py/bin/ls", "opt/tool", "ws/sub/tool"):
            os.chmod(world.file(name, ELF), 0o755)
        world.file("ws/text")
        world.link("ws/ls", "/bin/sh")
        world.link("ws/inner", "sub/tool")
        world.link("ws/.venv/bin/python", "/usr/bin/env")
        world.link("ws/out", "../opt/tool")
        world.link("py/bin/through", f"{world.root}/back")
        world.link("ws/back", "/usr/bin/env")
        world.link("py/bin/away", f"{top}/opt/tool")
        world.grant(py=f"{top}/py")
        yield world


def ask(world: World, given: object, *profiles: Any, look: dict[str, Any] | None = None) -> Any:
    return world.facts(*profiles, look=look, execution={"argv": [given, "x"]}).program


def fields(fact: Any) -> tuple[Any, ...]:
    return fact.found, fact.origin, fact.name


SH = os.path.basename(os.path.realpath("/bin/sh"))
ENV = os.path.basename(os.path.realpath("/usr/bin/env"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("sh", (True, "search-path", SH)),
        ("/bin/sh", (True, "absolute", SH)),
        ("/usr/bin/../bin/sh", (True, "absolute", SH)),
        ("python9", (True, "search-path", "python9")),
        ("{top}/py/bin/python9", (True, "absolute", "python9")),
        ("./tool", (True, "workspace", "tool")),
        ("sub/tool", (True, "workspace", "tool")),
        ("{root}/tool", (True, "workspace", "tool")),
        ("sub/../tool", (True, "workspace", "tool")),
        ("./inner", (True, "workspace", "tool")),
        ("./ls", (True, "workspace", SH)),
        (".venv/bin/python", (True, "workspace", ENV)),
        ("through", (True, "workspace", ENV)),
        ("./out", (True, "outside", "tool")),
        ("../opt/tool", (True, "outside", "tool")),
        ("../../../../../../bin/sh", (True, "outside", SH)),
        ("{top}/opt/tool", (True, "outside", "tool")),
        ("away", (True, "outside", "tool")),
        ("no-such-program", (False, "search-path", ABSENT)),
        ("/no/such/program", (False, "absolute", ABSENT)),
        ("./no-such-program", (False, "workspace", ABSENT)),
        ("tool", (False, "search-path", ABSENT)),
        ("./text", (True, "workspace", "text")),
        ("./sub", (True, "workspace", "sub")),
        ("/proc/self/exe", (False, "absolute", ABSENT)),
        ("x" * 5000, (False, "search-path", ABSENT)),
    ],
)
def test_program_is_resolved_once(world: World, given: str, expected: tuple[object, ...]) -> None:
    fact = ask(world, given.format(top=world.top, root=world.root))
    assert fields(fact) == expected
    if fact.found:
        status = os.stat(fact.path)
        assert (fact.device, fact.inode) == (status.st_dev, status.st_ino)
        assert os.path.realpath(fact.path) == fact.path


@pytest.mark.parametrize("given", ["", None, 3, ["ls"], "a\0b", "\udcff"])
def test_what_is_no_name_is_not_looked_for(world: World, given: object) -> None:
    assert ask(world, given) is ABSENT


@pytest.mark.parametrize("given", ["a\nb", "a\x1bb", "\u202els"])
def test_what_no_report_can_show_is_not_found_and_not_looked_for(world: World, given: str) -> None:
    path = world.file(f"ws/{given}")
    os.chmod(path, 0o755)
    fact = ask(world, f"./{given}")
    assert (fact.found, fact.executable, fact.path) == (False, ABSENT, ABSENT)


def test_what_is_there_and_no_program_is_not_executable(world: World) -> None:
    facts = [ask(world, given) for given in ("./text", "./sub", "./tool", "./nothing")]
    assert [fact.executable for fact in facts] == [False, False, True, ABSENT]


@pytest.mark.parametrize(
    "execution", [{"argv": []}, {"argv": "ls"}, {"argv": None}, "ls; id", ["ls"], {"argv": {"0": "ls"}}]
)
def test_only_a_vector_has_a_program(world: World, execution: object) -> None:
    fact: Any = world.facts(execution=execution).program
    assert (fact is ABSENT) is (execution != ["ls"])


def test_no_vector_has_no_program(world: World) -> None:
    assert world.facts().program is ABSENT


def test_search_goes_through_extra_directories_then_toolchains_then_the_system(world: World) -> None:
    look = {"extra_path": (".venv/bin", f"{world.top}/opt")}
    assert fields(ask(world, "pytest", look=look)) == (True, "workspace", "pytest")
    assert fields(ask(world, "python", look=look)) == (True, "workspace", ENV)
    assert ask(world, "ls", look=look).path == f"{world.top}/py/bin/ls"
    assert fields(ask(world, "tool", look=look)) == (True, "outside", "tool")
    with world.held(look=look, execution={"argv": ["ls"]}) as held:
        own = (f"{world.root}/.venv/bin", f"{world.top}/opt", f"{world.top}/py/bin")
        assert held.search_path[:3] == own
        assert held.search_path[3:][:1] == ("/usr/local/sbin",)


def test_program_is_looked_for_on_the_given_path_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{world.top}/opt")
    assert ask(world, "tool").found is False


def test_process_of_the_host_sees_everything(world: World) -> None:
    assert fields(ask(world, f"{world.top}/opt/tool", HOST)) == (True, "absolute", "tool")
    assert fields(ask(world, "./tool", HOST)) == (True, "workspace", "tool")
    assert fields(ask(world, "../opt/tool", HOST)) == (True, "outside", "tool")


def test_program_of_an_image_is_not_the_hosts(world: World) -> None:
    assert ask(world, "ls", profile(root=RootRule(system="image"), launcher="docker")) is ABSENT


@pytest.mark.parametrize(
    ("mode", "owner", "uid", "gids", "executable"),
    [
        (0o755, 5, 7, (7,), True),
        (0o700, 5, 7, (7,), False),
        (0o700, 5, 5, (7,), True),
        (0o070, 5, 5, (5,), False),
        (0o070, 5, 7, (5,), True),
        (0o001, 5, 7, (5,), False),
        (0o001, 5, 7, (7,), True),
        (0o001, 5, 0, (0,), True),
        (0o644, 5, 0, (0,), False),
        (0o754, 5, -1, (), False),
    ],
)
def test_program_is_one_that_the_worker_may_execute(
    world: World, mode: int, owner: int, uid: int, gids: tuple[int, ...], executable: bool
) -> None:
    if not IS_ROOT:
        pytest.skip("needs root to give a file away")
    os.chown(f"{world.root}/tool", owner, owner)
    os.chmod(f"{world.root}/tool", mode)
    trees = Trees(workspace=world.root, search=(), visible=())
    fact: Any = program(["./tool"], trees, Worker(uid=uid, gids=frozenset(gids)))
    assert (fact.found, fact.executable) == (True, executable)


@pytest.mark.parametrize(
    ("mode", "owner", "group", "executable"),
    [(0o700, 0, 0, True), (0o677, 0, 0, False), (0o670, 5, 0, True), (0o700, 5, 5, False), (0o701, 5, 5, True)],
)
def test_program_of_roots_in_a_mapped_workspace_is_the_workers(
    world: World, mode: int, owner: int, group: int, executable: bool
) -> None:
    if not IS_ROOT:
        pytest.skip("needs root to give a file away")
    worker = Worker(uid=61001, gids=frozenset((61001,)), mapped=0)
    for path in ("ws/tool", "opt/tool"):
        os.chown(f"{world.top}/{path}", owner, group)
        os.chmod(f"{world.top}/{path}", mode)
    trees = Trees(workspace=world.root, search=(f"{world.top}/opt",), visible=(f"{world.top}/opt",))
    fact: Any = program(["./tool"], trees, worker)
    assert fact.executable is executable
    fact = program(["tool"], trees, worker)
    assert fact.executable is bool(mode & 0o001)  # outside the workspace nobody's files are


def test_program_below_a_closed_directory_is_unknown(world: World) -> None:
    world.directory("ws/closed", 0)
    trees = Trees(workspace=world.root, search=(f"{world.root}/closed",), visible=())
    worker = Worker(uid=STRANGER, gids=frozenset())

    def look(given: str) -> Any:
        return lambda: encode(program([given], trees, worker))

    closed, searched = look("closed/tool"), look("tool")
    answers = [as_stranger(question) if IS_ROOT else question() for question in (closed, searched)]
    place = f"{world.root}/closed".lstrip("/")
    assert answers[0]["found"] == {"unknown": f"`closed/tool` cannot be looked at: permission denied at `{place}`"}
    assert answers[1]["found"] is False  # where it cannot look, it cannot run either


# --- scripts, and what would have to be mounted


def script(world: World, name: str, first: str) -> None:
    os.chmod(world.file(name, f"{first}\nprint()\n"), 0o755)


def around(fact: Any) -> tuple[Any, ...]:
    return fact.origin, fact.interpreter, fact.interpreter_origin, fact.toolchain


def test_script_names_its_interpreter(world: World) -> None:
    for first in ("#!/usr/bin/env sh", "#! /usr/bin/env", "#!\t/usr/bin/env\tsh -x"):
        script(world, "ws/script", first)
        assert around(ask(world, "./script")) == ("workspace", f"/usr/bin/{ENV}", "absolute", ABSENT)


@pytest.mark.parametrize(
    "first", ["", "#!", "#! ", "print()", "!#/usr/bin/env", " #!/usr/bin/env", "#!usr/bin/env", "#!/nowhere/sh"]
)
def test_first_line_that_names_none_or_nothing_that_is_there(world: World, first: str) -> None:
    script(world, "ws/script", first)
    fact = ask(world, "./script")
    assert around(fact) == ("workspace", ABSENT, ABSENT, ABSENT)
    assert fact.executable is False


@pytest.mark.skipif(os.path.lexists("/bin/sh\r"), reason="needs a host without an odd program")
@pytest.mark.parametrize(
    ("first", "executable"),
    [("#!/bin/sh\r", False), ("#!/bin/sh -e\r", True), ("#!/bin/sh\0", True), ("#!  /bin/sh", True), ("MZ", False)],
)
def test_script_can_be_started_where_its_interpreter_is_there(world: World, first: str, executable: bool) -> None:
    script(world, "ws/script", first)
    assert ask(world, "./script").executable is executable
    done = _started(f"{world.root}/script")
    assert done is executable  # the kernel's own word


def _started(path: str) -> bool:
    try:
        os.waitpid(os.posix_spawn(path, [path], {}), 0)
    except OSError:
        return False
    return True


def test_program_that_the_kernel_refuses_ends_the_search(world: World) -> None:
    script(world, "py/bin/sh", "print()")
    fact = ask(world, "sh")
    assert (fact.path, fact.executable) == (f"{world.top}/py/bin/sh", False)


def test_interpreter_outside_is_so_through_an_environment_of_the_workspace(world: World) -> None:
    os.chmod(world.file("opt/python-9/bin/python9", ELF), 0o755)
    world.link("ws/.venv/bin/python3", f"{world.top}/opt/python-9/bin/python9")
    script(world, "ws/.venv/bin/script", f"#!{world.root}/.venv/bin/python3")
    outside = f"{world.top}/opt/python-9"
    python = f"{outside}/bin/python9"
    assert around(ask(world, "script", look={"extra_path": (".venv/bin",)})) == (
        "workspace", python, "outside", outside,
    )  # fmt: skip
    assert around(ask(world, "python3", look={"extra_path": (".venv/bin",)})) == ("outside", ABSENT, ABSENT, outside)
    world.grant(py=outside)
    assert around(ask(world, "script", look={"extra_path": (".venv/bin",)})) == (
        "workspace", python, "workspace", ABSENT,
    )  # fmt: skip


def test_no_one_toolchain_would_do_where_a_link_on_the_way_is_elsewhere(world: World) -> None:
    os.chmod(world.file("opt/python-9.1/bin/python9", ELF), 0o755)
    world.link("opt/python-9", "python-9.1")
    world.link("ws/.venv/bin/python3", f"{world.top}/opt/python-9/bin/python9")
    assert around(ask(world, "./.venv/bin/python3")) == ("outside", ABSENT, ABSENT, ABSENT)


def test_program_that_does_not_stand_in_a_bin_has_no_toolchain(world: World) -> None:
    assert around(ask(world, f"{world.top}/opt/tool")) == ("outside", ABSENT, ABSENT, ABSENT)


@pytest.mark.skipif(not IS_ROOT, reason="a program that its own parent may not read takes root to make")
def test_program_that_may_be_executed_and_not_read_is_no_script(world: World) -> None:
    script(world, "ws/script", "#!/usr/bin/env")
    os.chmod(f"{world.root}/script", 0o111)
    trees = Trees(workspace=world.root, search=(), visible=("/",))
    asked = as_stranger(lambda: encode(program(["./script"], trees, Worker(uid=STRANGER, gids=frozenset()))))
    assert (asked["executable"], asked["interpreter"]) == (True, None)
