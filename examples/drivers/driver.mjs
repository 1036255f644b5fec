// A driver in JavaScript: previews a declaration, and with `run` approves and runs it.
//
//   node driver.mjs preview FILE [--site SITE]      nothing is started
//   node driver.mjs run FILE [--site SITE]          preview, approve in your name, run, say how it ended
//
// The exit code is prespawn's: 0 it ended well, 1 blocked, 4 undecided, 5 the host failed closed, 6 it ran badly.
import { spawnSync } from "node:child_process";

const [act, file, ...site] = process.argv.slice(2);
const program = process.env.PRESPAWN ?? "prespawn";

/** Call prespawn with a vector, never through a shell; return its exit code and its one JSON document. */
function prespawn(...words) {
  const done = spawnSync(program, [...words, ...site, "--format", "json"], { encoding: "utf8" });
  if (done.error) throw done.error;
  process.stderr.write(done.stderr);
  return [done.status, done.stdout ? JSON.parse(done.stdout) : null];
}

/** Say what stands in the way, one line a blocker, and stop. */
function stop(code, document) {
  for (const blocker of document?.verdict?.blockers ?? []) console.log(`${blocker.id}: ${blocker.field}`);
  process.exit(code);
}

const [previewed, preview] = prespawn("run", file);
if (previewed !== 0) stop(previewed, preview);
console.log(preview.invocation.join(" "));
if (act !== "run") process.exit(0);

const [approved, refusal] = prespawn("approve", file, "--reason", "approved by examples/drivers/driver.mjs");
if (approved !== 0) stop(approved, refusal);
const [ended, run] = prespawn("run", file, "--execute");
console.log(JSON.stringify(run));
process.exit(ended);
