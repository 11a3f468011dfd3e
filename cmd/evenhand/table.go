package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/evenhand/evenhand/ingest"
)

// csvRows are those of a table, whose first line names the columns.
type csvRows struct {
	witness
	c      *csv.Reader
	head   []string
	line   int // of the last row
	before int // lines before the reader's first
	empty  int // rows without a cell, passed over
}

// openTable reads the names of columns. Its errors quote nothing of the input: without a line of names that is what people wrote.
func openTable(br *bufio.Reader, form inputForm) (*csvRows, error) {
	t := &csvRows{witness: newWitness()}
	line, mac := firstLine(br)
	if mac {
		br = bufio.NewReaderSize(macLines{br}, 1<<20)
	}
	comma, err := parseDelimiter(form.delimiter)
	if err != nil {
		return nil, err
	}
	if sep, ok := strings.CutPrefix(strings.ToLower(strings.Trim(line, "\"")), "sep="); ok && utf8.RuneCountInString(sep) == 1 { // of Excel
		if _, err := br.ReadString('\n'); err != nil {
			return nil, errNoColumns
		}
		t.before = 1
		if comma == 0 {
			comma, _ = utf8.DecodeRuneInString(sep)
		}
		line, _ = firstLine(br)
	}
	if comma == 0 && strings.HasSuffix(strings.ToLower(form.name), ".tsv") {
		comma = '\t'
	}
	if comma == 0 {
		comma, _ = delimiterOf(line)
	}
	t.c = csv.NewReader(br)
	if comma == '\t' {
		t.c = csv.NewReader(&plainQuotes{r: br})
	}
	t.c.Comma = comma
	head, err := t.c.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errNoColumns
	case err != nil:
		return nil, fmt.Errorf("csv: the first line must name the columns: %w%s", err, mendQuote(err))
	}
	t.note(head)
	seen := map[string]int{}
	for i, cell := range head {
		if !utf8.ValidString(cell) {
			return nil, errNotUTF8.err
		}
		name := columnName(cell)
		if name == "" {
			name = fmt.Sprintf("column_%d", i+1)
		}
		if first, twice := seen[name]; twice {
			what := "the same name"
			if ingest.KnownField(name) {
				what = "the name " + name
			}
			return nil, fmt.Errorf("csv: columns %d and %d have %s: rename one of them", first, i+1, what)
		}
		seen[name] = i + 1
		t.head = append(t.head, name)
	}
	return t, nil
}

var errNoColumns = errors.New("csv: the first line must name the columns, and the input is empty")

// columnName is a cell of the first line as a name: fields of an event are known in capitals and between spaces, too.
func columnName(cell string) string {
	name := strings.TrimSpace(cell)
	if lower := strings.ToLower(name); ingest.KnownField(lower) {
		return lower
	}
	return name
}

// looksLikeName tells a name from what people write: a short word.
func looksLikeName(s string) bool {
	return s != "" && len(s) <= 40 && strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '_' && r != '.' && r != '-'
	}) < 0 && strings.IndexFunc(s, unicode.IsLetter) >= 0
}

// firstLine looks at the first line without reading it. mac tells whether it ends as those of old Macintoshes do: with a bare CR.
func firstLine(br *bufio.Reader) (line string, mac bool) {
	for n := 512; ; n *= 2 {
		head, err := br.Peek(min(n, br.Size()))
		quoted := false
		for i, c := range head {
			switch {
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '\n':
				return string(bytes.TrimSuffix(head[:i], []byte("\r"))), false
			case c == '\r' && (i+1 < len(head) || err != nil) && (i+1 == len(head) || head[i+1] != '\n'):
				return string(head[:i]), true
			}
		}
		if err != nil || n >= br.Size() {
			return string(head), false
		}
	}
}

// macLines reads CR as LF.
type macLines struct{ r io.Reader }

func (m macLines) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	for i, c := range p[:n] {
		if c == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// delimiterOf is the one of , ; tab and | that the line has most often outside quotes, how often; the comma where there is none.
func delimiterOf(line string) (comma rune, n int) {
	counts, quoted := map[rune]int{}, false
	for _, r := range line {
		if r == '"' {
			quoted = !quoted
		} else if !quoted {
			counts[r]++
		}
	}
	comma = ','
	for _, r := range ",;\t|" {
		if counts[r] > counts[comma] {
			comma = r
		}
	}
	return comma, counts[comma]
}

// parseDelimiter reads --delimiter; 0 for none.
func parseDelimiter(s string) (rune, error) {
	switch r, n := utf8.DecodeRuneInString(s); {
	case s == "":
		return 0, nil
	case s == "tab", s == `\t`:
		return '\t', nil
	case n < len(s), r == utf8.RuneError, strings.ContainsRune("\"\r\n", r):
		return 0, &settingsError{fmt.Errorf("--delimiter: %q is not one character, such as ; or |, or tab", s)}
	default:
		return r, nil
	}
}

// note adds cells to the digest.
func (t *csvRows) note(cells []string) {
	for _, c := range cells {
		t.add([]byte(c))
	}
}

func (t *csvRows) next() (map[string]any, int, error) {
	for {
		rec, err := t.c.Read()
		var fault *csv.ParseError
		switch {
		case errors.As(err, &fault):
			t.note(rec)
			t.line = t.before + fault.StartLine
			return nil, t.line, t.lost(fault, rec)
		case err != nil:
			return nil, t.line, err
		}
		t.note(rec)
		line, _ := t.c.FieldPos(0)
		t.line = t.before + line
		row := map[string]any{}
		blank := true
		for i, name := range t.head {
			if !utf8.ValidString(rec[i]) {
				return nil, t.line, errNotUTF8
			}
			if blank = blank && strings.TrimSpace(rec[i]) == ""; rec[i] != "" {
				row[name] = cell(rec[i])
			}
		}
		if !blank {
			return row, t.line, nil
		}
		t.empty++
	}
}

// lost is the fault of a row that is not read. A quote that should not stand there takes the lines up to the next one with it.
func (t *csvRows) lost(fault *csv.ParseError, rec []string) *rowError {
	last := fault.Line
	if errors.Is(fault, csv.ErrFieldCount) { // the row is whole, and its quotes closed
		last, _ = t.c.FieldPos(len(rec) - 1)
		last += strings.Count(rec[len(rec)-1], "\n")
	}
	if last == fault.StartLine {
		return &rowError{err: fmt.Errorf("csv: %w%s", fault.Err, mendQuote(fault))}
	}
	return &rowError{fmt.Errorf("csv: %w: a quote opens in line %d and all up to line %d was taken as one row and not read; close or double the quote",
		fault.Err, t.line, t.before+last), last - fault.StartLine}
}

// mendQuote says how a quote at fault is written, "" for other faults.
func mendQuote(err error) string {
	if errors.Is(err, csv.ErrBareQuote) || errors.Is(err, csv.ErrQuote) {
		return `: a field with quotes stands in quotes, its own doubled: "say ""hi"""`
	}
	return ""
}

// plainQuotes reads a table of tabs, where a quote within a field that begins with none is a sign like any other: it puts such fields into
// quotes, as package csv wants them. A field that begins with a quote stays as it is.
type plainQuotes struct {
	r      *bufio.Reader
	quoted bool // the line begins within quotes
	out    []byte
}

func (q *plainQuotes) Read(p []byte) (int, error) {
	if len(q.out) == 0 {
		line, err := q.r.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		if q.out = line; bytes.IndexByte(line, '"') >= 0 {
			q.out = q.line(line)
		}
	}
	n := copy(p, q.out)
	q.out = q.out[n:]
	return n, nil
}

func (q *plainQuotes) line(b []byte) (out []byte) {
	for len(b) > 0 {
		from := 0 // of the search for the field's end
		if q.quoted || b[0] == '"' {
			from = q.closing(b)
		}
		end, next := len(b), len(b)
		if tab := bytes.IndexByte(b[from:], '\t'); tab >= 0 {
			end, next = from+tab, from+tab+1
		} else if from == 0 {
			end = len(bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r")))
		}
		if field := b[:end]; from == 0 && bytes.IndexByte(field, '"') >= 0 {
			out = fmt.Appendf(out, `"%s"`, bytes.ReplaceAll(field, []byte(`"`), []byte(`""`)))
		} else {
			out = append(out, field...)
		}
		out, b = append(out, b[end:next]...), b[next:]
	}
	return out
}

// closing is the place behind the quote that closes the field, or the end of the line.
func (q *plainQuotes) closing(b []byte) int {
	i := 0
	if !q.quoted {
		i = 1
	}
	for q.quoted = true; i < len(b); i++ {
		switch {
		case b[i] != '"':
		case i+1 < len(b) && b[i+1] == '"':
			i++
		default:
			q.quoted = false
			return i + 1
		}
	}
	return len(b)
}
