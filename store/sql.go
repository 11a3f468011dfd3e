package store

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/shopspring/decimal"

	"github.com/evenhand/evenhand/internal/chconn"
)

// SQL runs a statement as given and hands over its rows one by one, values in the order of columns.
// conn must be signed in as a read-only user: what may be read is the server's decision, and no
// tenant is bound. The slices are valid during the call of each only; an error of each ends the query.
func SQL(ctx context.Context, conn driver.Conn, statement string, each func(columns []string, values []any) error) (err error) {
	const op = "store: sql"
	rows, err := conn.Query(ctx, strings.TrimRight(strings.TrimSpace(statement), ";"))
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = chconn.Wrap(op, cerr)
		}
	}()
	columns, types := rows.Columns(), rows.ColumnTypes()
	dest, values := make([]any, len(columns)), make([]any, len(columns))
	for rows.Next() {
		for i, t := range types {
			dest[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := rows.Scan(dest...); err != nil {
			return chconn.Wrap(op, err)
		}
		for i := range dest {
			values[i] = dayOf(types[i].DatabaseTypeName(), reflect.ValueOf(dest[i]).Elem().Interface())
		}
		if err := each(columns, values); err != nil {
			return err
		}
	}
	return chconn.Wrap(op, rows.Err())
}

// dayOf writes the value of a column of days as one; other values, and NULL, stay as they are.
func dayOf(column string, v any) any {
	column = strings.TrimSuffix(strings.TrimPrefix(column, "Nullable("), ")")
	if column != "Date" && column != "Date32" {
		return v
	}
	if at, ok := v.(*time.Time); ok && at != nil {
		v = *at
	}
	if at, ok := v.(time.Time); ok {
		return at.Format(time.DateOnly)
	}
	return v
}

// WriteTSV runs a statement and writes a line of column names and a line a row, separated by tabs;
// tabs, line ends and backslashes in values are escaped as ClickHouse does, NULL is \N.
func WriteTSV(ctx context.Context, w io.Writer, conn driver.Conn, statement string) error {
	b := bufio.NewWriter(w)
	head := true
	err := SQL(ctx, conn, statement, func(columns []string, values []any) error {
		if head {
			head = false
			b.WriteString(strings.Join(columns, "\t") + "\n") //nolint:errcheck // Flush reports it
		}
		for i, v := range values {
			if i > 0 {
				b.WriteByte('\t') //nolint:errcheck // Flush reports it
			}
			b.WriteString(tsv(plain(v))) //nolint:errcheck // Flush reports it
		}
		return b.WriteByte('\n')
	})
	if ferr := b.Flush(); err == nil {
		err = ferr
	}
	return err
}

// WriteJSON runs a statement and writes a JSON object a row and line, keys in the order of columns. What JSON has no
// number for, NaN and the infinities, is null, as in ClickHouse's own JSON formats. A row is written whole or not at all.
func WriteJSON(ctx context.Context, w io.Writer, conn driver.Conn, statement string) error {
	b := bufio.NewWriter(w)
	var row []byte
	err := SQL(ctx, conn, statement, func(columns []string, values []any) error {
		row = row[:0]
		for i, v := range values {
			sep := byte(',')
			if i == 0 {
				sep = '{'
			}
			name, err := json.Marshal(columns[i])
			if err != nil {
				return err
			}
			value, err := marshal(plain(v))
			if err != nil {
				return fmt.Errorf("column %s: %w", columns[i], err)
			}
			row = append(append(append(append(row, sep), name...), ':'), value...)
		}
		_, err := b.Write(append(row, "}\n"...))
		return err
	})
	if ferr := b.Flush(); err == nil {
		err = ferr
	}
	return err
}

// marshal is json.Marshal with null for floats that JSON cannot hold, however deep they lie.
func marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	var unsupported *json.UnsupportedValueError
	if !errors.As(err, &unsupported) {
		return b, err
	}
	return json.Marshal(finite(reflect.ValueOf(v)))
}

// finite copies what holds floats; the others stay as they are.
func finite(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Elem().Kind() != reflect.Struct { // decimals, times and wide integers are structs
			return finite(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 { // bytes and UUIDs
			break
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = finite(v.Index(i))
		}
		return out
	case reflect.Map:
		out := reflect.MakeMapWithSize(reflect.MapOf(v.Type().Key(), reflect.TypeFor[any]()), v.Len())
		for i := v.MapRange(); i.Next(); {
			if e := finite(i.Value()); e != nil {
				out.SetMapIndex(i.Key(), reflect.ValueOf(e))
			} else {
				out.SetMapIndex(i.Key(), reflect.Zero(reflect.TypeFor[any]()))
			}
		}
		return out.Interface()
	case reflect.Invalid:
		return nil
	}
	return v.Interface()
}

// plain makes a scanned value printable: pointers of Nullable become their value or nil, times get
// one form, bytes that are no UTF-8 (digests) become hexadecimal.
func plain(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.999Z")
	case decimal.Decimal:
		return json.Number(v.String())
	case string:
		if !utf8.ValidString(v) {
			return hex.EncodeToString([]byte(v))
		}
		return v
	case []uint8: // Array(UInt8), which JSON would take for bytes
		out := make([]int, len(v))
		for i, n := range v {
			out[i] = int(n)
		}
		return out
	}
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer {
		if rv.IsNil() {
			return nil
		}
		if _, wide := v.(*big.Int); !wide {
			return plain(rv.Elem().Interface())
		}
	}
	return v
}

var tsvEscapes = strings.NewReplacer("\\", "\\\\", "\t", "\\t", "\n", "\\n", "\r", "\\r", "\x00", "\\0")

func tsv(v any) string {
	switch v := v.(type) {
	case nil:
		return `\N`
	case string:
		return tsvEscapes.Replace(v)
	case fmt.Stringer:
		return tsvEscapes.Replace(v.String())
	}
	switch reflect.ValueOf(v).Kind() {
	case reflect.Slice, reflect.Map, reflect.Struct:
		if b, err := json.Marshal(v); err == nil {
			return tsvEscapes.Replace(string(b))
		}
	}
	return tsvEscapes.Replace(fmt.Sprint(v))
}
