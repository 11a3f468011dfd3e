package main

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/judge/compliance"
	"github.com/evenhand/evenhand/judge/mend"
	"github.com/evenhand/evenhand/remediation"
	"github.com/evenhand/evenhand/store"
)

// hostile would clear the screen, go up a line, set the title, turn the direction and forge a line.
const hostile = "a\x1b[2J\x1b[1Ab\u009b1Ac\x1b]0;t\x07d\u202ee\u2066f\rg\x7fh\xffi\u2028j\x00\n  by  admin"

func TestSpelled(t *testing.T) {
	for _, tc := range []struct{ in, line, lines string }{
		{"plain", "plain", "plain"},
		{"Größe 5 €, 日本語 \u00a0«نمی\u200cخواهم» 👨\u200d👩", "Größe 5 €, 日本語 \u00a0«نمی\u200cخواهم» 👨\u200d👩", "Größe 5 €, 日本語 \u00a0«نمی\u200cخواهم» 👨\u200d👩"},
		{"a\n\tb\r", `a\n\tb\r`, "a\n\tb\\r"},
		{"\x1b[2J\x7f", `\x1b[2J\x7f`, `\x1b[2J\x7f`},
		{"\u009b1A\u202e\u200b\ufeff\u2028\U000e0041", `\u009b1A\u202e\u200b\ufeff\u2028\U000e0041`, `\u009b1A\u202e\u200b\ufeff\u2028\U000e0041`},
		{"\xff\xe2\x80", `\xff\xe2\x80`, `\xff\xe2\x80`},
	} {
		if got := inLine(tc.in); got != tc.line {
			t.Errorf("%q within a line: %q", tc.in, got)
		}
		if got := inLines(tc.in); got != tc.lines {
			t.Errorf("%q: %q", tc.in, got)
		}
		var b strings.Builder
		w := plainly(&b)
		for i := range len(tc.in) { // a byte a write
			if n, err := w.Write([]byte(tc.in[i : i+1])); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		_, _ = io.WriteString(w, "\n")
		if b.String() != tc.lines+"\n" {
			t.Errorf("%q in pieces: %q", tc.in, b.String())
		}
	}
}

// fillWith puts s into every string that v holds; lists get one entry.
func fillWith(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Pointer:
		if v.Type().Elem().PkgPath() != "time" {
			v.Set(reflect.New(v.Type().Elem()))
			fillWith(v.Elem(), s)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(s))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillWith(v.Index(0), s)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type() != reflect.TypeFor[time.Time]() {
				fillWith(v.Field(i), s)
			}
		}
	}
}

func filledWith[T any](s string) *T {
	v := new(T)
	fillWith(reflect.ValueOf(v).Elem(), s)
	return v
}

// TestNoOutputObeysItsValues prints for people what came from outside, all of it hostile: no control
// character comes out, and no line that was not there with harmless values.
func TestNoOutputObeysItsValues(t *testing.T) {
	for name, show := range map[string]func(out io.Writer, s string){
		"gates list": func(out io.Writer, s string) { printGate(out, filledWith[gates.Gate](s)) },
		"gates show": func(out io.Writer, s string) { explainGate(out, filledWith[gates.Gate](s)) },
		"judge":      func(out io.Writer, s string) { new(judgeCmd).print(out, filledWith[compliance.Verdict](s)) },
		"judge --explain": func(out io.Writer, s string) {
			(&judgeCmd{Explain: true}).print(out, filledWith[compliance.Verdict](s))
		},
		"dlq list": func(out io.Writer, s string) {
			printRejected(out, []store.RejectedCount{{Reason: "bad_json", Count: 1}}, []store.Rejected{{Tenant: s, Topic: "t", Detail: s}})
		},
		"dlq show": func(out io.Writer, s string) {
			x := shown(&store.Rejected{Tenant: s, Topic: "t", Detail: s}, nil, false)
			if err := x.print(out); err != nil {
				t.Error(err)
			}
		},
		"replay run":   func(out io.Writer, s string) { printReplay(out, filledWith[mend.Result](s)) },
		"tickets show": func(out io.Writer, s string) { printTicket(out, filledWith[remediation.Entry](s)) },
		"rates":        func(out io.Writer, s string) { printRates(out, nil, []store.TopFinding{{Evidence: s}}, 1) },
		"dlq --payload": func(out io.Writer, s string) {
			(&shownRejected{Message: filledWith[rejectedMessage](s)}).print(plainly(out))
		}, //nolint:errcheck // a buffer
	} {
		t.Run(name, func(t *testing.T) {
			var out, harmless strings.Builder
			show(&out, hostile)
			show(&harmless, "x")
			for _, r := range out.String() {
				if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
					t.Fatalf("%U in %q", r, out.String())
				}
			}
			texts := map[string]int{"replay run": 1, "tickets show": 3, "dlq --payload": 1}[name] // whose line breaks stay
			if a, b := strings.Count(out.String(), "\n"), strings.Count(harmless.String(), "\n"); a != b+texts {
				t.Errorf("%d lines, %d with harmless values:\n%s", a, b, out.String())
			}
			if !strings.Contains(out.String(), `\x1b`) || strings.ContainsRune(out.String(), 0x1b) {
				t.Errorf("not shown: %q", out.String())
			}
		})
	}
}

// TestTerminalsAreGuarded opens a terminal: what any command prints there is spelled, and bytes stay in a pipe.
func TestTerminalsAreGuarded(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: " + err.Error())
	}
	defer func() { _ = master.Close() }()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	if _, err := io.WriteString(guarded(terminal), "a\x1b[2Jb\u202e\n"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err = master.Read(b); err != nil || string(b[:n]) != "a\\x1b[2Jb\\u202e\r\n" {
		t.Errorf("%q (%v)", b[:n], err)
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), out.Close() }()
	if guarded(out) != io.Writer(out) {
		t.Error("a pipe is not given what there is")
	}
}
