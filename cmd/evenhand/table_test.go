package main

import (
	"bytes"
	"compress/gzip"
	"path/filepath"
	"strings"
	"testing"
)

// Tables come from spreadsheets and databases in many forms; the columns are told from the first line.
func TestEmitReadsTables(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("id,response\n1,a\n2,b\n"))
	_ = z.Close()
	for _, tc := range []struct {
		name, file, content string
		args                []string
		want, says          string
	}{
		{"semicolons", "a.csv", "id;response\n1;a, b\n2;b\n", nil, "1 a, b\n2 b\n", `columns are separated by ';'`},
		{"tabs", "a.tsv", "id\tresponse\n1\ta\n2\tb\n", nil, "1 a\n2 b\n", `columns are separated by '\t'`},
		{"tabs, quotes within a field", "a.tsv", "id\tresponse\tprompt\n1\tb, \"quoted\" inside\tx\n2\t5\" wide\t\"a \"\"b\"\"\tc\nd\"\r\n3\tthe \"end\"\t\r\n4\t\te \"f\"\r\n5\t\t\"\"", nil,
			"1 b, \"quoted\" inside\n2 5\" wide\n3 the \"end\"\n4 <nil>\n5 <nil>\n", ""},
		{"tabs by the flag, a quote at the end", "a.txt", "id\tresponse\n1\ta \"b\"", []string{"--delimiter", "tab", "--format", "csv"}, "1 a \"b\"\n", ""},
		{"bars", "a.csv", "id|response\n1|a\n2|b\n", nil, "1 a\n2 b\n", `columns are separated by '|'`},
		{"named by the first line", "a.csv", "sep=;\r\nid;response\r\n1;a\r\n2;b\r\n", nil, "1 a\n2 b\n", ""},
		{"named by the flag", "a.csv", "id:response\n1:a\n2:b\n", []string{"--delimiter", ":"}, "1 a\n2 b\n", ""},
		{"tab by the flag", "a.csv", "id\tresponse\n1\ta\n2\tb\n", []string{"--delimiter", "tab"}, "1 a\n2 b\n", ""},
		{"a delimiter in quotes", "a.csv", "id,\"x;y;z\",response\n1,,a\n2,,b\n", []string{"--map", "x;y;z=metadata.x"}, "1 a\n2 b\n", ""},
		{"line ends of old Macintoshes", "a.csv", "id,response\r1,a\r2,b", nil, "1 a\n2 b\n", ""},
		{"line ends of Windows", "a.csv", "id,response\r\n1,a\r\n2,b\r\n", nil, "1 a\n2 b\n", ""},
		{"rows without a value", "a.csv", "id,response\n1,a\n,\n, \n2,b\n", nil, "1 a\n2 b\n", ", 2 empty rows passed over"},
		{"names in capitals and between spaces", "a.csv", "ID, Response \n1,a\n2,b\n", nil, "1 a\n2 b\n", ""},
		{"a mapped name in capitals", "a.csv", "ID,Answer \n1,a\n2,b\n", []string{"--map", "answer=response"}, "1 a\n2 b\n", ""},
		{"piped", "-", "id,response\n1,a\n2,b\n", nil, "1 a\n2 b\n", ""},
		{"piped, one column", "-", "response\na\nb\n", []string{"--field", "id="}, "a\nb\n", ""},
		{"packed", "a.csv.gz", packed.String(), nil, "1 a\n2 b\n", ""},
		{"packed and piped", "-", packed.String(), nil, "1 a\n2 b\n", ""},
		{"no rows", "a.csv", "id,response\n", nil, "", "0 sent to "},
		{"no rows, said", "a.csv", "id,response\n", nil, "", ": the input has no rows\n"},
		{"only rows without a value", "a.csv", "id,response\n,\n", nil, "", ", 1 empty row passed over: the input has no rows\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := newReceiver(t, accept)
			args, in := append([]string{"emit", "--to", to.URL}, tc.args...), tc.content
			if tc.file != "-" {
				file := filepath.Join(t.TempDir(), tc.file)
				write(t, file, tc.content)
				args, in = append(args, file), ""
			}
			command(t, in, args...).says(t, 0, "", tc.says)
			fields := []string{"id", "response"}
			if strings.HasPrefix(tc.content, "response") {
				fields = fields[1:]
			}
			if got := to.fields(fields...); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
	command(t, "", "emit", "--delimiter", "ab", "--to", "http://127.0.0.1:1").says(t, 2, "", `--delimiter: "ab" is not one character`)
}

// A quote that should not stand there takes the lines up to the next one with it: they are named, and count.
func TestEmitNamesTheLinesThatAQuoteTakes(t *testing.T) {
	for _, tc := range []struct{ name, content, says, sent string }{
		{"to the end", "id,response\n1,a\n2,\"b\n3,c\n4,d\n", "line 3: csv: extraneous or missing \" in quoted-field: a quote opens in line 3 and all up to line 5 was taken as one row and not read", "1\n"},
		{"to the next", "id,response\n1,a\n2,\"b\n3,c\n4,\"d\n5,e\n", "a quote opens in line 3 and all up to line 5 was", "1\n5\n"},
		{"to one that closes it", "id,response\n1,a\n2,\"b\n3,c\n4,d\",x\n5,e\n", "line 3: csv: wrong number of fields: a quote opens in line 3 and all up to line 5 was", "1\n5\n"},
		{"behind a line that names the delimiter", "sep=,\nid,response\n2,\"b\n3,c\n4,\"d\n5,e\n1,a\n", "a quote opens in line 3 and all up to line 5 was", "5\n1\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := newReceiver(t, accept)
			r := command(t, tc.content, "emit", "--to", to.URL, "--format", "csv")
			r.says(t, 3, "", tc.says)
			r.says(t, 3, "", "3 bad lines not sent")
			if got := to.fields("id"); got != tc.sent {
				t.Errorf("sent %s", got)
			}
		})
	}
}

// Without a line of names the first line is what people wrote; nothing of it is shown, nor sent.
func TestEmitShowsNoTextOfATable(t *testing.T) {
	const table = "My SSN is 123-45-6789 confidential prompt,Answer secret\nSecond secret prompt,Other secret\n"
	utf16 := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			b.WriteRune(r)
			b.WriteByte(0)
		}
		return b.String()
	}
	for _, tc := range []struct {
		name, file, content string
		maps                []string
		code                int
		err                 string
	}{
		{"nothing mapped", "a.csv", table, nil, 2, "the first line names no field of an event: is there a header line?"},
		{"piped", "-", table, nil, 2, "the first line names no field of an event: is there a header line?"},
		{"a column that is not there", "a.csv", table, []string{"prompt=prompt"}, 2, "--map prompt=prompt: the input has no column prompt: is there a header line?"},
		{"a name by chance", "a.csv", "prompt," + table, nil, 2, "column 2: is not a field of the event"},
		{"the same text twice", "a.csv", "Answer secret,Answer secret\n", nil, 1, "csv: columns 1 and 2 have the same name: rename one of them"},
		{"a field twice", "a.csv", "response,prompt, Response\na,b,c\n", nil, 1, "csv: columns 1 and 3 have the name response: rename one of them"},
		{"Latin-1", "a.csv", "response,secret caf\xe9\na,b\n", nil, 1, "invalid_utf8"},
		{"UTF-16 with a mark", "a.csv", "\xff\xfe" + utf16(table), nil, 1, "the input is UTF-16"},
		{"UTF-16 without", "a.csv", utf16(table), nil, 1, "the input is UTF-16"},
		{"UTF-16 lines", "a.ndjson", utf16(`{"response":"secret"}`), nil, 1, "the input is UTF-16"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := newReceiver(t, accept)
			file, in := fed(t, tc.file, tc.content)
			args := append([]string{"emit", "--to", to.URL}, file...)
			for _, m := range tc.maps {
				args = append(args, "--map", m)
			}
			r := command(t, in, args...)
			r.says(t, tc.code, "", tc.err)
			if said := strings.ToLower(r.out + r.err); strings.Contains(said, "secret") || strings.Contains(said, "ssn") || strings.Contains(said, "123-45") {
				t.Errorf("shows text: %s", said)
			}
			if len(to.events) > 0 {
				t.Errorf("sent %v", to.events)
			}
		})
	}
}

// In a table of tabs a quote is a sign like any other, but for one that begins a field; a fault tells how quotes are written.
func TestEmitReadsQuotesOfTables(t *testing.T) {
	const mend = `: a field with quotes stands in quotes, its own doubled: "say ""hi"""`
	for _, tc := range []struct {
		name, in, want, says string
		code                 int
	}{
		{"tabs: within fields", "prompt\tresponse\na \"b\"\t\"c \"\"d\"\"\te\nf\"\n\"g\"\th\"\n", "a \"b\" c \"d\"\te\nf\ng h\"\n", "2 sent", 0},
		{"tabs: one that begins a field", "prompt\tresponse\na\t\"b\" c\nd\te\n", "d e\n", "line 2: csv: extraneous or missing \" in quoted-field" + mend + "\n", 3},
		{"tabs: one that does not end", "prompt\tresponse\na\t\"b\nc\td \"e\"\n", "", "a quote opens in line 2 and all up to line 3 was taken", 3},
		{"tabs: more behind a fault", "prompt\tresponse\n\"a\"b\tc\n\"d \"\"e\"\tf \"g\"\n", "d \"e f \"g\"\n", "line 2: csv: ", 3},
		{"commas: within a field", "prompt,response\na \"b\",c\nd,e\n", "d e\n", "line 2: csv: bare \" in non-quoted-field" + mend + "\n", 3},
		{"commas: in the first line", "pro\"mpt,response\na,b\n", "", mend, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := newReceiver(t, accept)
			command(t, tc.in, "emit", "--to", to.URL, "--format", "csv").says(t, tc.code, "", tc.says)
			if got := to.fields("prompt", "response"); got != tc.want {
				t.Errorf("got\n%s", got)
			}
		})
	}
}
