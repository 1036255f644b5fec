#!/bin/sh
# A driver in shell: previews a declaration, and with `run` approves and runs it.
#
#   driver.sh preview FILE [--site SITE]      nothing is started
#   driver.sh run FILE [--site SITE]          preview, approve in your name, run, say how it ended
#
# The exit code is prespawn's: 0 it ended well, 1 blocked, 4 undecided, 5 the host failed closed, 6 it ran badly.
set -eu
prespawn=${PRESPAWN:-prespawn}
act=$1 file=$2
shift 2

# The gate: blocked means that nothing was started, and the reasons stand on standard output.
"$prespawn" run "$file" "$@" --format text || exit
[ "$act" = run ] || exit 0

"$prespawn" approve "$file" "$@" --reason "approved by examples/drivers/driver.sh" >&2
"$prespawn" run "$file" --execute "$@"
