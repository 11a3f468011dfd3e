package check

import (
	"regexp"
	"strings"
)

// separators are signs between the cells of a table of text.
var separators = [...]string{"|", "\t", ";", ","}

// ColumnHead gives, in lower case, the name of the column that a value of a table of text stands in: the
// paragraph's first line has as many signs between columns as the value's own, at least one.
func ColumnHead(text string, at int) string {
	least := max(0, at-mostLine)
	lineAt := func(at int) int { return least + strings.LastIndexByte(text[least:at], '\n') + 1 }
	line := lineAt(at)
	from := line
	for from > least { // line by line up to the paragraph's first
		before := lineAt(from - 1)
		if before == from-1 && before > least {
			break // an empty line
		}
		from = before
	}
	if line == from {
		return ""
	}
	head, _, _ := strings.Cut(text[from:line], "\n")
	whole, _, _ := strings.Cut(text[line:min(len(text), at+mostLine)], "\n")
	for _, sep := range [...]string{",", ";", "\t", "|"} {
		if n := strings.Count(head, sep); n > 0 && n == strings.Count(whole, sep) {
			return strings.ToLower(strings.Split(head, sep)[strings.Count(text[line:at], sep)])
		}
	}
	return ""
}

// SecretColumn tells whether a match names a column of a table of text, or of a statement that inserts rows, with secrets in it.
func SecretColumn(text string, start, end int) bool { return len(secretCells(text, start, end)) > 0 }

const (
	mostRows    = 500
	mostColumns = 64
	mostLine    = 1 << 12
)

// heading is a cell that names a column.
var heading = regexp.MustCompile("^[\\s\"'`*_]*[\\pL][\\pL _/-]{1,40}[\\s\"'`*_]*$")

// secretCells gives the secrets in the column that a match names.
func secretCells(text string, start, end int) (found []Range) {
	is := isCellPassword
	switch name := strings.ToLower(text[start:end]); {
	case strings.Contains(name, "key") || strings.Contains(name, "token") || strings.Contains(name, "secret"):
		is = isCellKey
	case strings.Contains(name, "pin"):
		is = isCellPIN
	}
	for _, r := range cells(text, start) {
		if is(text[r.From:r.To]) {
			found = append(found, r)
		}
	}
	return found
}

func isCellPassword(value string) bool {
	return isPassword(value, false) && !charset.MatchString(value) && !hashed.MatchString(value)
}

func isCellKey(value string) bool {
	return len(value) >= 16 && isPassword(value, false) && strong(value) && !hashed.MatchString(value)
}

func isCellPIN(value string) bool {
	return len(value) >= 4 && len(value) <= 8 && len(digits(value)) == len(value)
}

// hashed is what is kept of a password in its place, as crypt(3) and others write it.
var hashed = regexp.MustCompile(`^(?:\{?\w{2,12}\}?)?\$\w+\$|^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})$`)

// cells gives what stands in the column whose name lies at a place, where it is one word.
func cells(text string, start int) []Range {
	if at := inserted(text, start); at > 0 {
		return secretValues(text, at, start)
	}
	begin := start - len(line(text, start))
	if begin > 0 && text[begin-1] != '\n' { // of a long line only the end is looked at
		return nil
	}
	head, _, _ := strings.Cut(text[begin:min(len(text), begin+mostLine)], "\n")
	for _, sep := range separators {
		n := strings.Count(head, sep)
		if n == 0 || n >= mostColumns {
			continue
		}
		column := strings.Count(text[begin:start], sep)
		if !heading.MatchString(strings.Split(head, sep)[column]) {
			return nil
		}
		if above := line(text, max(0, begin-1)); begin > 0 && strings.Count(above, sep) == n { // no head of a table, but an item of a list
			return nil
		}
		return cellsBelow(text, begin+len(head)+1, sep, n, column)
	}
	return nil
}

// cellsBelow gives the words in a column of the lines from a place on that have as many separators as the head.
func cellsBelow(text string, at int, sep string, n, column int) (found []Range) {
	for row := 0; row < mostRows && at < len(text); row++ {
		whole, _, _ := strings.Cut(text[at:min(len(text), at+mostLine)], "\n")
		if strings.Count(whole, sep) != n {
			break
		}
		from := at
		for range column {
			from += strings.Index(text[from:], sep) + 1
		}
		cell, _, _ := strings.Cut(text[from:at+len(whole)], sep)
		if r, ok := cellWord(cell, from); ok {
			found = append(found, r)
		}
		at += len(whole) + 1
	}
	return found
}

// cellWord gives the word that a cell holds which begins at a place.
func cellWord(cell string, at int) (Range, bool) {
	const marks = " \t\r\"'`*_"
	value := strings.TrimLeft(cell, marks)
	at += len(cell) - len(value)
	value = strings.TrimRight(value, marks)
	return Range{at, at + len(value)}, value != "" && !strings.ContainsAny(value, " \t<>")
}

// SecretList tells whether a match that ends with the line before a list leads to secrets in it.
func SecretList(text string, start, end int) bool { return len(secretItems(text, start, end)) > 0 }

// item is a line that holds one word, as an item of a list or alone; \1 is the word.
var item = regexp.MustCompile("^[ \\t]*(?:[-*•]|\\d{1,2}[.)])?[ \\t]*[`*\"']{0,3}([^\\s`\"']{6,64}?)[`*\"']{0,3}[ \\t\\r]*$")

// recovery is a code of recovery: groups of letters and digits.
var recovery = regexp.MustCompile(`^[0-9A-Za-z]{4,8}(?:-[0-9A-Za-z]{4,8}){1,5}$`)

// secretItems gives the secrets in the list that begins behind a match. One empty line may stand between two items.
func secretItems(text string, start, end int) (found []Range) {
	const mostItems = 50
	codes := strings.Contains(strings.ToLower(text[start:end]), "cod") // of recovery
	empty := 0
	for at := end; at < len(text) && len(found) < mostItems && empty < 2; {
		whole, _, _ := strings.Cut(text[at:min(len(text), at+mostLine)], "\n")
		if strings.TrimSpace(whole) == "" {
			empty++
		} else {
			m := item.FindStringSubmatchIndex(whole)
			if m == nil {
				break
			}
			if v := whole[m[2]:m[3]]; !(isPassword(v, false) && strong(v)) && !(codes && recovery.MatchString(v) && strings.ContainsAny(v, "0123456789")) {
				break
			}
			found, empty = append(found, Range{at + m[2], at + m[3]}), 0
		}
		at += len(whole) + 1
	}
	return found
}

// into begins the columns of a statement that inserts rows.
var into = regexp.MustCompile(`(?i)\binsert\s+into\s+[\w."\x60\[\]]{1,80}\s*\($`)

// rows begins their values, behind the columns.
var rows = regexp.MustCompile(`(?i)^[^()]{0,400}\)\s*values\s*`)

// inserted gives where the columns of a statement begin in which a place lies, 0 where it lies in none.
func inserted(text string, at int) int {
	least := max(0, at-mostLine/8)
	open := strings.LastIndexByte(text[least:at], '(') + 1
	if open == 0 || !into.MatchString(text[least:least+open]) {
		return 0
	}
	return least + open
}

// secretValues gives the words of the rows of a statement whose columns begin at a place, in the column of another place.
func secretValues(text string, columns, at int) (found []Range) {
	column := strings.Count(text[columns:at], ",")
	behind := rows.FindStringIndex(text[at:])
	if behind == nil {
		return nil
	}
	at += behind[1]
	for row := 0; row < mostRows && at < len(text) && text[at] == '('; row++ {
		values, to := tuple(text, at+1)
		if column < len(values) {
			v := values[column]
			if r, ok := cellWord(text[v.From:v.To], v.From); ok {
				found = append(found, r)
			}
		}
		at = to + len(text[to:]) - len(strings.TrimLeft(text[to:], ", \t\r\n"))
	}
	return found
}

// tuple gives the values between brackets from a place on, and where they end.
func tuple(text string, at int) (values []Range, end int) {
	from, quote := at, byte(0)
	for end = at; end < min(len(text), at+mostLine); end++ {
		switch c := text[end]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ',' || c == ')':
			values = append(values, Range{from, end})
			from = end + 1
			if c == ')' {
				return values, end + 1
			}
		}
	}
	return values, end
}
