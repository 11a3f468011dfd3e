package normal

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Each line: what it shows, a text, its normal form.
func TestForms(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"clean", "Women lead well.", "Women lead well."},
		{"empty", "", ""},
		{"invalid bytes survive", "a\xffb \xe2\x82 wom\xc2\xaden", "a\xffb \xe2\x82 women"},
		{"fullwidth", "ｗｏｍｅｎ，", "women,"},
		{"mathematical", "𝔴𝔬𝔪𝔢𝔫 𝓪𝓻𝓮", "women are"},
		{"enclosed", "ⓦⓞⓜⓔⓝ 🅦🅞🅜🅔🅝 🆆🅾🅼🅴🅽", "women WOMEN WOMEN"},
		{"small capitals", "ᴡᴏᴍᴇɴ ᴀʀᴇ", "women are"},
		{"ligature", "ﬁlthy", "filthy"},
		{"ß is a letter in a word that has it", "Sie weiß, wie weiße Wände weiß werden", "Sie weiß, wie weiße Wände weiß werden"},
		{"case folds that simple folding lacks", "Kıll STUPİD Kelvin ſtupid Straße", "Kill STUPID Kelvin stupid Straße"},
		{"numbers keep their form", "x² ½ ① ™ 10⁶ ㎏", "x² ½ ① ™ 10⁶ kg"},
		{"invisible", "w\u200bo\u200cm\u2060e\ufe0fn \u202estupid\u202c \U000e0041", "women stupid "},
		{"joiners that work", "می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष"},
		{"piled marks", "w̶o̶m̶e̶n̶ s\u0301\u0302\u0303tupid", "women stupid"},
		{"accents", "cafe\u0301 Müller niño Ệ", "café Müller niño Ệ"},
		{"accents as disguise", "wömên are stüpíd", "women are stupid"},
		{"Cyrillic among Latin", "wоmеn аre stuрid", "women are stupid"},
		{"a whole word of look-alikes", "all мen are", "all men are"},
		{"unknown word of two scripts", "Fооbаrs", "Foobars"},
		{"Russian", "Он не рос. Она там, не тут.", "Он не рос. Она там, не тут."},
		{"Russian among English", "She said «он не вор» and left", `She said "он не вор" and left`},
		{"Greek", "Ο άνθρωπος είναι καλός", "Ο άνθρωπος είναι καλός"},
		{"Greek in science", "5 μm kΩ αβ TNFα Δx", "5 μm kΩ αβ TNFα Δx"},
		{"leet", "h4te $tupid @ll 1mm1gr4nts b1tch W0MEN", "hate stupid all immigrants bitch WOMEN"},
		{"no leet", "gpt4o B2B H1B covid19 mp3 page5 1st 21st 5in A1 $5m @live $PATH h264 3men", "gpt4o B2B H1B covid19 mp3 page5 1st 21st 5in A1 $5m @live $PATH h264 3men"},
		{"addresses", "https://h4te.com/w0men m3n@w0rk.org /etc/h4te ./5hit/b1tch", "https://h4te.com/w0men m3n@w0rk.org /etc/h4te ./5hit/b1tch"},
		{"repeated", "sooo stuuupid coool grrr www", "so stupid cool grrr www"},
		{"spaced", "w o m e n are s.t.u.p.i.d W-O-M-E-N", "women are stupid WOMEN"},
		{"spaced words", "w o m e n  a r e  l a z y", "women are lazy"},
		{"spaced without borders", "I h a t e w o m e n", "I hate women"},
		{"spaced digits", "from 1.5# 1.5 on, `x`", "from 1.5# 1.5 on, x"},
		{"dots in a row within a word", "wom..en are lazy", "women are lazy"},
		{"letters repeated in either case", "stuUuUpid", "stupid"},
		{"a long text of spaced letters", strings.TrimSpace(strings.Repeat("w o m e n a r e l a z y ", 30)), strings.TrimSpace(strings.Repeat("women are lazy ", 30))},
		{"letters alone", "a b c d e f A + B + C + D x.y.z.w", "a b c d e f A + B + C + D x.y.z.w"},
		{"masked", "f*ck st*pid m*n b*t 2*x*4", "fuck stupid m*n b*t 2*x*4"},
		{"emoji", "Muslims are 🐒🐒! 👩🏿‍🦱 ok🙂fine", "Muslims are monkeys! woman ok fine"},
		{"flags", "🇩🇪 🇼🇴🇲🇪🇳 🇬🇦🇾s 🏳️‍🌈 🇦🇽", "germany women gays pride flag flag"},
		{"entities", "wo&#109;en &#x77;omen &amp;lt; &nbsp;x R&D &foo;", "women women <  x R&D &foo;"},
		{"emphasis", "**too** _emotional_ *lazy* ~~no~~ `x` wo**men** __b__", "too emotional lazy no x women b"},
		{"no emphasis", "2 * 3 * 4 snake_case_name a**b *ptr", "2 * 3 * 4 snake_case_name a**b *ptr"},
		{"lists", "# Title\n- item\n  * item\n1. one\n> q\n• dot", "Title\nitem\n  item\n1. one\n> q\ndot"},
		{"tables", "|a|b|\n|---|---|\n|c|d|\nx | y", "\na\nb\n\n\n---\n---\n\n\nc\nd\n\nx | y"},
		{"links", "[women](https://x.y/z) ![i](a.png) arr[i](x)", "women i arr[i](x)"},
		{"tags", "<b>women</b> are<br>so <script> a < b > c", "women are\nso <script> a < b > c"},
		{"elements of XML", `<?xml version="1.0"?><chat><m u="1">women are</m><m u="2" k='>'>too soft</m></chat>`, "\n\n\nwomen are\n\ntoo soft\n\n"},
		{"an element within a document", "<thinking>\nwomen are\n</thinking> <br/>so <x:y-z.1/>it <details open>is</details>", "\n\nwomen are\n\n \nso \nit \nis\n"},
		{"prose of an attribute", `<note id="5" text="women are too soft" to=me>`, "\nwomen are too soft\n"},
		{"a document's head and unread text", "<!DOCTYPE html><![CDATA[women]]> are", "\n\nwomen\n are"},
		{"no element", "List<String> <stdio.h> a < b and c > d x <y and z> I <3 it, <ann@example.org> <https://a.b/c> Dear <name>, <T extends C<T>> <k=1> <1a b=2> </> <y z='",
			"List<String> <stdio.h> a < b and c > d x <y and z> I <3 it, <ann@example.org> <https://a.b/c> Dear <name>, <T extends C<T>> <k=1> <1a b=2> </> <y z='"},
		{"signs", "“quoted” – it’s—fine… ‹x›", `"quoted" - it's - fine... "x"`},
		{"mixed", "**Ｗ0mеn** аrе s\u200bt\u200bu\u200bp\u200bi\u200bd 🐷", "Women are stupid pig"},
	} {
		if got := Of(tc.text); got.String() != tc.want {
			t.Errorf("%s: %q\n got %q\nwant %q", tc.name, tc.text, got.String(), tc.want)
		}
	}
}

// Each case: a text, a part of its normal form, and the part of the original that it must lead to.
func TestOriginal(t *testing.T) {
	for _, tc := range []struct{ text, part, want string }{
		{"all w0men are", "women", "w0men"},
		{`<m u="1">é</m><m u="2">w0men</m>`, "women", "w0men"},
		{`<m text="all w0men are too soft"/>`, "women are", "w0men are"},
		{"all w\u200bo\u200bm\u200be\u200bn\u200b are", "women", "w\u200bo\u200bm\u200be\u200bn"},
		{"é **women** é", "women", "women"},
		{"é w o m e n  a r e", "are", "a r e"},
		{"so stuuupid", "stupid", "stuuupid"},
		{"so stuuupid", "tu", "tuuu"},
		{"are 🐒🐒!", "monkeys", "🐒🐒"},
		{"&amp;lt; wo&#109;en", "me", "&#109;e"},
		{"[old women](http://a.b) x", "women", "women"},
		{"**Ｗ0mеn** аrе", "Women", "Ｗ0mеn"},
		{"w\u200b0\u200bm\u200be\u200bn", "om", "0\u200bm"},
	} {
		x := Of(tc.text)
		at := strings.Index(x.String(), tc.part)
		if at < 0 {
			t.Errorf("%q: normal form %q lacks %q", tc.text, x.String(), tc.part)
			continue
		}
		from, to := x.Original(at, at+len(tc.part))
		if got := tc.text[from:to]; got != tc.want {
			t.Errorf("%q: %q leads to %q, want %q", tc.text, tc.part, got, tc.want)
		}
	}
}

// What passes do not settle loses its punctuation, and stays as it is then.
func TestUnsettled(t *testing.T) {
	const depth = 3 * maxRounds
	text := strings.Repeat("[", depth) + "w0men" + strings.Repeat("](a/b)", depth)
	holds(t, text)
	x := Of(text)
	if got := strings.Join(strings.Fields(x.String()), " "); !strings.HasPrefix(got, "women a b") || strings.ContainsAny(got, "[]()") {
		t.Errorf("got %q", got)
	}
}

// pieces make texts in which everything that passes look for meets everything else.
var pieces = []string{
	"w", "o", "m", "e", "n", "a", "i", "A", "women", "stupid", "hate", " ", " ", "  ", "\n", "\t", ".", "-", "_", "*", "**", "~~", "`", "```", "#", "# ", "- ", "|", "!", "?", ",", "/", "\\", "+",
	"0", "1", "3", "4", "@", "$", "&", "amp;", "&amp;", "&#109;", "&lt;", "#38;", ";", "[", "](", ")", "(", "http://x.y", "<b>", "</b>", "<!--", "-->", "<", ">", "'", "’", "“", "—", "…",
	"é", "ö", "e\u0301", "\u0301", "\u0336", "\u200b", "\u200d", "\ufe0f", "\u202e", "о", "е", "м", "ж", "η", "ω", "ᴡ", "ɴ", "ｗ", "𝔪", "ⓔ", "🅽", "🐒", "👩🏿‍🦱", "🇩🇪", "🇼", "🏳️‍🌈", "日", "ﷺ", "²", "½", "\xff", "\xe2\x82", "\x80", "\x7f", "\x01", "\v", "·", "ı", "İ", "ß", "K",
	"{", "}", "]", "{\"", "\"", "\": ", "\", ", "\"}", "[\"", "[{\"k\": \"", ":", "null", "\\n", "\\\"", "\\u00e9", "\\ud83d\\ude00", "\\u0022", "&quot;",
}

// holds checks what is promised of every text.
func holds(t interface{ Fatalf(string, ...any) }, text string) {
	x := Of(text)
	n := x.String()
	if again := Of(n); again.String() != n {
		t.Fatalf("%q: %q becomes %q", text, n, again.String())
	}
	if len(n) > MaxGrowth*len(text) {
		t.Fatalf("%q: %d bytes become %d", text, len(text), len(n))
	}
	if utf8.ValidString(text) && !utf8.ValidString(n) {
		t.Fatalf("%q: %q is no UTF-8", text, n)
	}
	if x.Same() != (n == text) {
		t.Fatalf("%q: Same is %t", text, x.Same())
	}
	lastFrom, lastTo := 0, 0
	for i := 0; i < len(n); {
		_, size := utf8.DecodeRuneInString(n[i:])
		from, to := x.Original(i, i+size)
		if from < lastFrom || to < lastTo || from >= to || to > len(text) {
			t.Fatalf("%q: %q at %d leads to [%d,%d) after [%d,%d)", text, n, i, from, to, lastFrom, lastTo)
		}
		if utf8.ValidString(text) && (!utf8.RuneStart(text[from]) || to < len(text) && !utf8.RuneStart(text[to])) {
			t.Fatalf("%q: [%d,%d) cuts a code point", text, from, to)
		}
		if e, f := x.Original(i, i); e != f || e > len(text) {
			t.Fatalf("%q: empty range at %d leads to [%d,%d)", text, i, e, f)
		}
		lastFrom, lastTo, i = from, to, i+size
	}
}

func TestHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		holds(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "pieces"), ""))
	})
}

// What the quick pass calls clean, no pass changes.
func TestCleanIsClean(t *testing.T) {
	ascii := []string{}
	for _, p := range pieces {
		if isASCII(p) {
			ascii = append(ascii, p)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(ascii), 0, 12).Draw(t, "pieces"), "")
		if !clean(text) {
			return
		}
		x := Text{normal: text, original: text}
		if x.settlePlainly(); x.String() != text {
			t.Fatalf("%q is called clean and becomes %q", text, x.String())
		}
	})
}

func FuzzNormal(f *testing.F) {
	for _, p := range pieces {
		f.Add(p)
	}
	f.Add(`{"reply": "Wom\u0435n \"are\"\nlazy {\"a\": [1, 2, {}]}", "n": 1.5, "x": ["a b", nu`)
	f.Add("**Ｗ0mеn** аrе s\u200bt\u200bu\u200bp\u200bi\u200bd 🐷 &amp;lt; [w o m e n](http://x.y)")
	f.Fuzz(func(t *testing.T, text string) { holds(t, text) })
}

const (
	prose = "The applicant has worked in three hospitals and speaks four languages. Her references are strong, and the panel found her answers clear. We would like to offer her the post from March on, at the usual rate. "
	other = "The **applicant** has worked in 3 hospitals – and speaks “four” languages: see [here](https://a.b/c).\n- Her références are strong, w0men a\u200bre sооо good, and the panel found 🙂 her answers clear.\n"
	typed = "The applicant’s references are strong — the panel found her answers “clear” and well-argued. We’d like to offer her the post from March on…\n\n"
	greek = "Η αιτούσα έχει εργαστεί σε τρία νοσοκομεία και μιλά τέσσερις γλώσσες. Он работал в трёх больницах и знает четыре языка. "
)

func BenchmarkOf(b *testing.B) {
	for name, text := range map[string]string{"clean": prose, "marked": other, "typed": typed, "scripts": greek, "adversarial": "w 0 m е n.f*ck*n & ", "russian": "Он работал в трёх больницах и знает четыре языка, а она нет. ", "json": `{"id": 12, "note": "` + strings.TrimSpace(prose) + `\nYours", "tags": ["a", "b"]},`} {
		text = strings.Repeat(text, 2048/len(text)+1)[:2048]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				x := Of(text)
				if x.String() == "" {
					b.Fatal("empty")
				}
			}
		})
	}
}
