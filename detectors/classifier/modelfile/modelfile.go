// Package modelfile is the frame of a model's file: magic, the header's length (4 bytes, little endian), the header as JSON, the
// model's own parts, SHA-256 of all before it.
package modelfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

const maxHeader = 1 << 16

// Open checks a file's frame and reads its header into meta. parts are what follows, bytes of the file; version is the beginning of its digest.
func Open(file []byte, magic string, meta any) (parts []byte, version string, err error) {
	body, ok := bytes.CutPrefix(file, []byte(magic))
	if !ok || len(body) < 4+sha256.Size {
		return nil, "", errors.New("not a model file of this version")
	}
	end := len(file) - sha256.Size
	sum := sha256.Sum256(file[:end])
	if !bytes.Equal(sum[:], file[end:]) {
		return nil, "", errors.New("the digest does not fit: the file is damaged")
	}
	body = body[:len(body)-sha256.Size]
	size := binary.LittleEndian.Uint32(body)
	if body = body[4:]; size > maxHeader || int(size) > len(body) {
		return nil, "", fmt.Errorf("a header of %d bytes", size)
	}
	header := json.NewDecoder(bytes.NewReader(body[:size]))
	header.DisallowUnknownFields()
	if err := header.Decode(meta); err != nil {
		return nil, "", fmt.Errorf("header of another version of evenhand: make the file anew (docs/detection.md): %w", err)
	}
	return body[size:], hex.EncodeToString(sum[:6]), nil
}

// Seal puts the frame around a model's parts. The same meta and parts give the same bytes.
func Seal(magic string, meta any, parts []byte) ([]byte, error) {
	header, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	out := binary.LittleEndian.AppendUint32([]byte(magic), uint32(len(header)))
	out = append(append(out, header...), parts...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...), nil
}

// Finite tells whether none is infinite or no number.
func Finite(vs ...float64) bool {
	for _, v := range vs {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
