"""Which command lines run code that they do not name, spelled in every way that the programs take, and which do not."""

from __future__ import annotations

import shlex

import pytest

from prespawn.checker.functions.programs import runs_code
from prespawn.policy.catalogue import named_lists

LISTS = named_lists()

BLOCKED = r"""
tar cf x --checkpoint-act=exec=id a
tar xf x --to-com=id
tar xf x --to-com id
tar cIf id a b
gtar cIf id a b
split --filt=id f
sort --compress-prog=id f
rsync --rs=id a b
make --eva=x
make -E '$(shell id)'
wget --use-askpa=id u
node --ev=x
apt-get --option=a=b update
zip a.zip f -TTid
zip a.zip f -TT id
perl5.36-x86_64-linux-gnu -e x
x86_64-linux-gnu-gcc -wrapper id f.c
x86_64-linux-gnu-gcc-12 -wrapper id f.c
c99 -wrapper id f.c
gcc -fplugin=./p.so f.c
python3-dbg -c pass
python3.11d -c pass
python3.11-dbg -Ic pass
php --run x
julia --eval x
deno eval x
deno --quiet eval x
vim f -c ':!id'
vim f '+:!id'
vim.basic f -c ':!id'
sqlite3 db -cmd '.shell id'
sqlite3 db '.shell id'
psql -c '\! id'
psql db --comm='\! id'
git -c core.pager=id log
git -C . -c core.pager=id log
git --no-pager -c core.pager=id log
git --git-dir d --config-env=a=b log
git rebase -x id main
git rebase --ex=id main
git bisect run id
git -C . bisect run id
git submodule foreach id
git submodule --quiet foreach id
git grep -Oid x
git difftool -x id
dpkg-architecture -c id
scp -oProxyCommand=id a b:
prove -e id t
npm exec id
npm --silent exec id
npm --prefix d exec id
npm x id
uv run id
uv tool run id
poetry run id
bundle exec id
cmake -E env id
cmake -E chdir . id
install --strip-program=id -s a b
choom -n 1 -- id
logsave f id
ssh-agent id
dumb-init id
tini id
socat - EXEC:id
x86_64 id
sed '1e id' f
sed -n '1e id' f
sed s/x/id/e f
sed s/x/id/ge f
sed 's/x/id/ e' f
sed 's/[[:x' f
sed -e p -e 'e id' f
sed f -e 'e id'
sed -nee f
sed --expr='e id' f
sed --expression 'e id' f
sed -f x.sed -e 'e id' f
sed 's/[/]/#/e' f
sed 'v;e id' f
sed ':a;e id' f
sed '/x/!{p;e id' f
sed -e 'a\' -e 'e id' f
sed 's/a/b' f
gsed -- '$e id' f
"""

PASSING = r"""
pytest -q
make test
make -C d test
git status
git switch -c topic
git -C d switch -c topic
git --no-pager grep -c x
git grep -c x
git commit -c HEAD
git commit -m x
git log --oneline
git submodule update --init
git rebase main
git bisect good
git push -u origin main
python3 -B script.py
python3 -m pytest -c x.ini
python3 script.py -c x
npm test
npm run exec
npm --silent test
cargo test
cargo run
go run ./x
go test ./...
uv sync
poetry install
bundle install
deno run x.ts eval
tar xf a.tar
tar cf a.tar --checkpoint=100 I F
rsync -a a b
sort -u f
sort --check f
split -l 10 f
node script.js
node script.js -e x
find . -name x
grep -e x f
gcc -O2 -c f.c -o f.o
x86_64-linux-gnu-gcc-12 -c f.c
cmake -E copy a b
cmake --build b
install --strip a b
zip -T a.zip
sqlite3 db .schema
psql -f x.sql
php script.php --run
sed -i s/a/b/ f
sed -i.e s/a/b/ f
sed -n 1,10p f
sed -n '/start/,/end/p' f
sed -ne '5{p;q}' f
sed -E 's/([a-z]+)e/\1/gI' f
sed 's/[^/]*$//' f
sed 's/[[:space:]]*$//;s|^e|e|2' f
sed '/^#/d;$!N;P;D' f
sed ':a;N;$!ba;s/\n/ /g' f
sed '1i e id' f
sed '/x/a\
e' f
sed '\,e,d' f
sed y/e/f/ f
sed -e s/a/b/ -e '/e/d' e
sed -f e.sed e
sed --expression=s/e/b/w\ e f
sed
"""


def _vectors(text: str) -> list[list[str]]:
    return [shlex.split(line.replace("\0", "\n")) for line in text.replace("\\\n", "\\\0").split("\n") if line]


@pytest.mark.parametrize("argv", _vectors(BLOCKED), ids=shlex.join)
def test_command_line_that_runs_code_it_does_not_name_is_told_why(argv: list[str]) -> None:
    assert runs_code(LISTS, argv[0], argv[1:]) != ""


@pytest.mark.parametrize("argv", _vectors(PASSING), ids=shlex.join)
def test_everyday_command_line_runs_no_other_code(argv: list[str]) -> None:
    assert runs_code(LISTS, argv[0], argv[1:]) == ""


def test_subcommand_is_named_as_the_list_has_it() -> None:
    assert runs_code(LISTS, "git", ["bisect", "run", "id"]) == "a program that `bisect run` makes start another"
    assert runs_code(LISTS, "deno", ["eval", "x"]) == "an interpreter with `eval`"
    assert runs_code(LISTS, "sed", ["s/x/id/e"]) == "a program whose script starts another"
