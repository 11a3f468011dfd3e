package normal_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/evenhand/evenhand/detectors/normal"
)

func TestSpelled(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"as it came", "Card 4111 — 4111… wоmen h4te **bold** R&D AT&T; é", "Card 4111 — 4111… wоmen h4te **bold** R&D AT&T; é"},
		{"spaces", "1\u00a02\u202f3\u20094\u20075\u30006", "1 2 3 4 5 6"},
		{"dashes", "1–2−3‐4‑5－6﹣7", "1-2-3-4-5-6-7"},
		{"quotation marks", "“a” „b“ «c» ‘d’ it’s", `"a" "b" "c" 'd' it's`},
		{"escapes", `{"a": "x\n1\t2\u00e9 \"\\\/ \ud83d\ude00 \u00a0\q"}`, "{\"a\": \"x\n1\t2é \"\\/ 😀  \\q\"}"},
		{"escapes once", `{"a": "C:\\new\\table"}`, `{"a": "C:\new\table"}`},
		{"escapes upon each other", `{"a": "{\"b\": \"“x”\\n1 C:\\\\new\"}", "c": "\\n"}`, "{\"a\": \"{\"b\": \"\"x\"\n1 C:\\new\"}\", \"c\": \"\\n\"}"},
		{"escapes in entities", `{&quot;a&quot;: &quot;x\n1&quot;}`, "{\"a\": \"x\n1\"}"},
		{"escapes cut off", `{"a": "x\n1\u00`, "{\"a\": \"x\n1\\u00"},
		{"a string of JSON", `"x\n1"`, "\"x\n1\""},
		{"no JSON", `say "x\n1" {x: "\n"} C:\new`, `say "x\n1" {x: "\n"} C:\new`},
		{"entities", "bob&#64;example&#x2e;org &commat; &amp;#64;", "bob@example.org @ @"},
		{"invisible", "4111\u200b1111 exam\u00adple \u202e12\u202c \ufeffx", "41111111 example 12 x"},
		{"wide", "４１１１ｂｏｂ＠ｘ．ｏｒｇ", "4111bob@x.org"},
		{"mathematical", "𝟒𝟏𝟏𝟏 𝚋𝚘𝚋", "4111 bob"},
		{"upon itself", "&#65300;&#8203;１", "41"},
		{"joiners of words", "می\u200cخواهم", "می\u200cخواهم"},
		{"no UTF-8", "a\xff&#64;\xfeb", "a\xff@\xfeb"},
	} {
		got := normal.Spelled(tc.text)
		if got.String() != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got.String(), tc.want)
		}
		if from, to := got.Original(0, len(got.String())); from != 0 && tc.name != "invisible" || to != len(tc.text) {
			t.Errorf("%s: all of it came from [%d, %d) of %d bytes", tc.name, from, to, len(tc.text))
		}
	}
}

// A pattern matches what it was written for once that is spelled.
func TestSpelledPattern(t *testing.T) {
	for pattern, text := range map[string]string{
		`“geheim”`: "Das ist “geheim” hier", `[a–c]x`: "a–x cx", `l’API\s–\s[‹«]`: "l’API – «", `\bné à`: "né\u00a0à", `né\x{e9}`: "néé", `A∣B`: "A∣B", `A∗`: "A∗", `plain`: "plain",
	} {
		form := normal.Spelled(text)
		re, err := regexp.Compile(normal.SpelledPattern(pattern))
		if err != nil || !re.MatchString(form.String()) {
			t.Errorf("%q on %q: %v, %v", pattern, form.String(), re, err)
		}
	}
	if re := regexp.MustCompile(normal.SpelledPattern(`[a–z]`)); re.MatchString("b") {
		t.Errorf("%v is a range", re)
	}
}

// Every part of what is spelled comes from whole characters of the original, in their order.
func FuzzSpelled(f *testing.F) {
	for _, seed := range []string{"bob&#64;x.org", "４\u200b１", "&amp;amp;#64;", "\xff＠", `{"a": "x\n\u00e9 {\"b\": \"\\n\"}", "c`, "1\u00a02–3 “x”", `"a\nb"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := normal.Spelled(text)
		if utf8.ValidString(text) && !utf8.ValidString(s.String()) {
			t.Fatalf("%q is no UTF-8", s.String())
		}
		last := 0
		for i, r := range s.String() {
			size := utf8.RuneLen(r)
			if r == utf8.RuneError {
				_, size = utf8.DecodeRuneInString(s.String()[i:])
			}
			from, to := s.Original(i, i+size)
			if from < last || to <= from || to > len(text) {
				t.Fatalf("%q: [%d, %d) comes from [%d, %d) after %d", text, i, i+size, from, to, last)
			}
			last = from
		}
	})
}

func BenchmarkSpelled(b *testing.B) {
	for name, text := range map[string]string{
		"clean": "The applicant has worked in three hospitals, and speaks four languages: {1, 2}. ",
		"typed": "The applicant’s references are strong — the panel found her answers “clear” and well-argued. ",
		"json":  `{"id": 12, "note": "The applicant has worked in three hospitals.\nYours"},`,
	} {
		text = strings.Repeat(text, 2048/len(text)+1)[:2048]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				x := normal.Spelled(text)
				if x.String() == "" {
					b.Fatal("empty")
				}
			}
		})
	}
}
