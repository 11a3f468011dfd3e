// Package expand does to a statement what Grafana's variables and the macros of its ClickHouse data
// source (4.14) do to it, so that tests and benchmarks run what Grafana would.
package expand

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// All is the value of a variable for which everything is chosen.
const All = "$__all"

// View is what a viewer has chosen: the range and the values of each variable, or All.
type View struct {
	From, To  time.Time
	Variables map[string][]string
	MinStep   time.Duration // of the panel; 0 means none
}

// points is how many a panel of common width shows.
const points = 600

// Statement gives the statement that reaches ClickHouse. It fails on a macro or variable that it does not
// know, and on a variable with All outside of $__conditionalAll: there, Grafana lists all values, which
// is none in an empty store.
func Statement(sql string, v View) (string, error) {
	var err error
	if sql, err = browser(sql, v); err != nil {
		return "", err
	}
	return backend(sql, v)
}

// browser is what the page does before it sends a statement.
func browser(sql string, v View) (string, error) {
	const conditional = "$__conditionalAll("
	for {
		at := strings.LastIndex(sql, conditional)
		if at < 0 {
			break
		}
		args, end, err := arguments(sql, at+len(conditional)-1)
		if err != nil || len(args) != 2 {
			return "", fmt.Errorf("%s…): %d arguments: %w", conditional, len(args), err)
		}
		name := strings.TrimPrefix(strings.TrimSpace(args[1]), "$")
		phrase := args[0]
		if slices.Equal(v.Variables[name], []string{All}) {
			phrase = "1=1"
		}
		sql = sql[:at] + phrase + sql[end:]
	}
	for name, values := range v.Variables {
		placeholder := "${" + name + ":singlequote}"
		if !strings.Contains(sql, placeholder) {
			continue
		}
		if slices.Contains(values, All) {
			return "", fmt.Errorf("variable %s is All outside of a condition", name)
		}
		quoted := make([]string, len(values))
		for i, s := range values {
			quoted[i] = "'" + strings.ReplaceAll(s, "'", `\'`) + "'"
		}
		sql = strings.ReplaceAll(sql, placeholder, strings.Join(quoted, ","))
	}
	if at := strings.Index(sql, "${"); at >= 0 {
		return "", fmt.Errorf("unknown variable: %.30s", sql[at:])
	}
	return sql, nil
}

// backend is what the data source does on Grafana's server; alert rules see only this.
func backend(sql string, v View) (string, error) {
	from, to := fmt.Sprintf("toDateTime(%d)", v.From.Unix()), fmt.Sprintf("toDateTime(%d)", v.To.Unix())
	step := max(1, int(math.Ceil(math.Max(v.To.Sub(v.From).Seconds()/points, v.MinStep.Seconds()))))
	for at := strings.LastIndex(sql, "$__"); at >= 0; at = strings.LastIndex(sql, "$__") {
		end := at + 3
		for end < len(sql) && (sql[end] == '_' || sql[end] >= 'a' && sql[end] <= 'z' || sql[end] >= 'A' && sql[end] <= 'Z') {
			end++
		}
		name, arg := sql[at:end], ""
		if name == "$__timeFilter" || name == "$__timeInterval" {
			args, after, err := arguments(sql, end)
			if err != nil || len(args) != 1 {
				return "", fmt.Errorf("%s takes one argument: %w", name, err)
			}
			arg, end = args[0], after
		}
		var now string
		switch name {
		case "$__fromTime":
			now = from
		case "$__toTime":
			now = to
		case "$__interval_s":
			now = fmt.Sprint(step)
		case "$__timeFilter":
			now = arg + " >= " + from + " AND " + arg + " <= " + to
		case "$__timeInterval":
			now = fmt.Sprintf("toStartOfInterval(toDateTime(%s), INTERVAL %d second)", arg, step)
		default:
			return "", fmt.Errorf("%s is not a macro of the data source", name)
		}
		sql = sql[:at] + now + sql[end:]
	}
	if strings.Contains(sql, "$") {
		return "", fmt.Errorf("a variable is left in: %.60s", sql[strings.Index(sql, "$"):])
	}
	return sql, nil
}

// arguments splits what stands in the parentheses that open at a position, and gives where they end.
func arguments(sql string, open int) (args []string, end int, err error) {
	if open >= len(sql) || sql[open] != '(' {
		return nil, 0, fmt.Errorf("no parenthesis")
	}
	depth, from := 0, open+1
	for i := open; i < len(sql); i++ {
		switch sql[i] {
		case '(':
			depth++
		case ',':
			if depth == 1 {
				args, from = append(args, sql[from:i]), i+1
			}
		case ')':
			if depth--; depth == 0 {
				return append(args, sql[from:i]), i + 1, nil
			}
		}
	}
	return nil, 0, fmt.Errorf("a parenthesis is open")
}
