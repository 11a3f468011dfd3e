package normal

import "strings"

// unescape decodes the escapes in [from, to), a string of JSON. What JSON does not know stays.
func (w *rewriter) unescape(from, to int) {
	for i := from; i < to; {
		n := strings.IndexByte(w.src[i:to], '\\')
		if n < 0 {
			return
		}
		i += n
		with, size := escape(w.src[i:to])
		if with != "" {
			w.put(i, i+size, with)
		}
		i += size
	}
}

// escape gives what the escape at the front of s stands for, "" if that is nothing, and how many bytes it takes.
func escape(s string) (with string, size int) {
	if len(s) < 2 {
		return "", 1
	}
	switch c := s[1]; c {
	case 'n':
		return "\n", 2
	case 't':
		return "\t", 2
	case 'r':
		return "\r", 2
	case 'b', 'f':
		return " ", 2
	case '"', '\\', '/':
		return s[1:2], 2
	case 'u':
		r, ok := unit(s)
		switch low, both := unit(s[min(6, len(s)):]); {
		case !ok:
		case r < 0xd800 || r > 0xdfff:
			return string(r), 6
		case both && r < 0xdc00 && low >= 0xdc00 && low < 0xe000:
			return string((r-0xd800)<<10 | (low - 0xdc00) + 0x10000), 12
		default: // half a pair
			return "", 6
		}
	}
	return "", 2
}

// unit reads \uXXXX.
func unit(s string) (r rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for i := 2; i < 6; i++ {
		r <<= 4
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			r |= rune(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r |= rune(c|0x20-'a') + 10
		default:
			return 0, false
		}
	}
	return r, true
}
