package check

import (
	"bytes"
	"crypto/sha256"
	"math/big"
	"strings"
)

// Wallet tells whether the match is an address of a crypto wallet: Bitcoin by the check sums of base58check
// and bech32 (BIP 173, BIP 350); Ethereum has none that holds for every spelling, so its rule needs a word.
func Wallet(text string, start, end int) bool {
	match := text[start:end]
	switch {
	case chained(text, start, end):
		return false
	case strings.HasPrefix(match, "0x"):
		return entropy(match[2:]) >= leastEntropy
	case strings.EqualFold(match[:min(3, len(match))], "bc1"):
		return bech32(match)
	}
	return base58check(match)
}

const base58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

func base58check(s string) bool {
	n := new(big.Int)
	for i := range len(s) {
		d := strings.IndexByte(base58, s[i])
		if d < 0 {
			return false
		}
		n.Mul(n, big.NewInt(58)).Add(n, big.NewInt(int64(d)))
	}
	if n.BitLen() > 25*8 {
		return false
	}
	b := n.FillBytes(make([]byte, 25)) // version, hash of 20 bytes, check sum of four
	once := sha256.Sum256(b[:21])
	twice := sha256.Sum256(once[:])
	return bytes.Equal(twice[:4], b[21:])
}

func bech32(s string) bool {
	const alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	lower := strings.ToLower(s)
	if s != lower && s != strings.ToUpper(s) || len(s) < 14 {
		return false
	}
	check := uint32(1)
	step := func(v uint32) {
		top := check >> 25
		check = check&0x1ffffff<<5 ^ v
		for i, g := range [...]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				check ^= g
			}
		}
	}
	for _, v := range [...]uint32{3, 3, 0, 2, 3} { // "bc", spread as BIP 173 says
		step(v)
	}
	for i := 3; i < len(lower); i++ {
		v := strings.IndexByte(alphabet, lower[i])
		if v < 0 {
			return false
		}
		step(uint32(v))
	}
	return check == 1 || check == 0x2bc830a3
}
