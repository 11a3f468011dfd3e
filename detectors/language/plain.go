package language

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What small words say of a text: that it is English, or that there is something else in it.
const (
	itIs  = 1
	isNot = 2
)

// smallWords are frequent words of at most four letters.
var smallWords = map[uint8]string{
	itIs: "the and you your with this that are",
	isNot: "de la le les des du en et un une el los que una il di che non het een je ik niet zijn na nie jest um uma te se si tu " +
		"der das den dem ein eine und ist sind sie ich wir ihr zu mit auf von vom zum zur bei aus auch nur kein sich wird wenn raus noch mehr oder aber weil dass uns euch ihn weg mal ganz",
}

// small finds them by their letters as bytes of a number, which its hash parts (a perfect hash).
var small = func() (table struct {
	times uint32
	words [1 << slotBits]uint32
	says  [1 << slotBits]uint8
}) {
	for table.times = 0x9e3779b1; ; table.times += 2 { // from 1 on it takes a second, as short words fall into few slots by small numbers
		clear(table.words[:])
		clear(table.says[:])
		alone := true
		for says, words := range smallWords {
			for w := range strings.FieldsSeq(words) {
				word := packed(w)
				i := slot(word, table.times)
				alone = alone && table.words[i] == 0
				table.words[i], table.says[i] = word, says
			}
		}
		if alone {
			return table
		}
	}
}()

const slotBits = 9

func slot(word, times uint32) uint32 { return word * times >> (32 - slotBits) }

// lettersOf are the bytes of a word of so many letters; none of longer ones.
var lettersOf = [6]uint32{0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0}

// PlainlyEnglish tells whether a text is English from end to end: it has English words, and neither frequent small words of other languages, which
// English texts hold but in names and quotations, nor letters that English has not. It errs on the other side.
//
// It goes from one end of a word to the next in 64 bytes at once: where words end is what a processor guesses worst.
func PlainlyEnglish(text string) bool {
	const block = 64
	says := uint8(0)
	begin, at := 0, 0 // where the word in hand begins
	for ; at+block+len(lettersOf) <= len(text); at += block {
		ends, foreign := ^uint64(0), uint64(0)
		for i := 0; i < block; i += 8 {
			eight := binary.LittleEndian.Uint64([]byte(text[at+i : at+i+8]))
			ends ^= oneEach(Letters(eight)) << i
			foreign |= eight
		}
		if foreign&highest != 0 && foreignLetters(text[at:], block) {
			return false
		}
		for ; ends != 0; ends &= ends - 1 {
			end := at + bits.TrailingZeros64(ends)
			word := binary.LittleEndian.Uint32([]byte(text[begin:begin+4])) & lettersOf[min(end-begin, len(lettersOf)-1)]
			i := slot(word, small.times) % (1 << slotBits)
			same := uint8(int64(uint64(small.words[i]^word)-1) >> 63) // all bits, or none: a branch would be guessed wrong
			says |= small.says[i] & same
			begin = end + 1
		}
		if says&isNot != 0 {
			return false
		}
	}
	if foreignLetters(text[at:], len(text)-at) {
		return false
	}
	for ; begin < len(text); begin++ {
		end := begin
		for end < len(text) && isLetter(text[end]) {
			end++
		}
		if end-begin < len(lettersOf)-1 {
			word := packed(text[begin:end])
			if i := slot(word, small.times); small.words[i] == word {
				says |= small.says[i]
			}
		}
		begin = end
	}
	return says == itIs
}

// foreignLetters tells whether a letter above 0x7f begins in the first n bytes.
func foreignLetters(text string, n int) bool {
	for i := range n {
		if text[i] >= utf8.RuneSelf {
			if r, _ := utf8.DecodeRuneInString(text[i:]); unicode.IsLetter(r) {
				return true
			}
		}
	}
	return false
}

const (
	all     = 0x0101010101010101
	highest = 0x80 * all
)

// Letters tells of each of eight bytes whether it is a letter of ASCII: by its highest bit, all others being 0.
func Letters(eight uint64) uint64 {
	low := (eight | 0x20*all) &^ highest                                       // in lower case, without what a sum would carry into the next byte
	return (low + (0x80-'a')*all) &^ (low + (0x7f-'z')*all) &^ eight & highest // not below a, not above z, ASCII
}

// oneEach takes the highest bits of eight bytes together: one bit for each.
func oneEach(highest uint64) uint64 { return highest >> 7 * 0x0102040810204080 >> 56 }

// packed gives the letters of a word of at most four as bytes of a number.
func packed(word string) (n uint32) {
	for i := range len(word) {
		n |= uint32(word[i]) << (8 * i)
	}
	return n
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }
