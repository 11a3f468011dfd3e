package gate

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/normal"
	"github.com/evenhand/evenhand/detectors/rules"
)

// Custom is an operator's rule, in the shape of seed 001's GateRule.
type Custom struct {
	// ID names the rule in findings (gate.<id>): 1 to 59 of a-z 0-9 _ . -, unique.
	ID string `yaml:"id" json:"id"`
	// Description is shown to the person who decides.
	Description string `yaml:"description" json:"description"`
	// Pattern is RE2 text, matched without regard to case, or a JavaScript literal as /…/i, matched
	// as its flags say (i, m, s; g, u, v, y and d change nothing here).
	Pattern string `yaml:"pattern" json:"pattern"`
	// Category groups rules: "data_export".
	Category string `yaml:"category" json:"category"`
}

var customID = regexp.MustCompile(`^[a-z0-9_.-]{1,59}$`)

// CustomPack is the id of the pack that custom and extra rules are in.
const CustomPack = "gate.custom"

// customPack makes one pack of custom and extra rules, nil when there are none. It is raw: an operator's
// pattern means the text as it is spelled. names are those of the two lists in errors.
func customPack(names [2]string, custom, extra []Custom, builtIn []*rules.Rule) (*rules.Pack, error) {
	if len(custom)+len(extra) == 0 {
		return nil, nil
	}
	pack := &rules.Pack{ID: CustomPack, Title: "Rules from the configuration", Version: "custom", Language: "und", Gate: true, Raw: true}
	seen := map[string]string{} // id -> where it was first used
	for _, r := range builtIn {
		seen[r.ID] = "the built-in rules"
	}
	var errs []error
	for _, part := range []struct {
		key  string
		list []Custom
	}{{names[0], custom}, {names[1], extra}} {
		for i, c := range part.list {
			key := fmt.Sprintf("%s[%d]", part.key, i)
			pattern, err := c.validate(key)
			if err != nil {
				errs = append(errs, err)
			}
			if first, dup := seen[c.ID]; dup {
				errs = append(errs, fmt.Errorf("%s.id: %q is already used in %s", key, c.ID, first))
			} else {
				seen[c.ID] = key
			}
			pack.Rules = append(pack.Rules, &rules.Rule{
				ID: c.ID, Description: c.Description, Category: c.Category, Confidence: 1,
				Pack: pack, Kind: "gate." + c.ID, Patterns: []string{c.Pattern}, Expanded: []string{normal.SpelledPattern(pattern)},
			})
		}
	}
	return pack, audit.E("gate: custom rules", audit.KindInvalid, errors.Join(errs...))
}

// validate gives the pattern as RE2, or every fault of the rule.
func (c Custom) validate(key string) (string, error) {
	var errs []error
	if !customID.MatchString(c.ID) {
		errs = append(errs, fmt.Errorf("%s.id: %q: want 1 to 59 of a-z 0-9 _ . -", key, c.ID))
	}
	for _, f := range []struct{ name, value string }{{"description", c.Description}, {"category", c.Category}} {
		if strings.TrimSpace(f.value) == "" {
			errs = append(errs, fmt.Errorf("%s.%s: is missing", key, f.name))
		}
	}
	pattern, err := re2(c.Pattern)
	if err != nil {
		errs = append(errs, fmt.Errorf("%s.pattern: %w", key, err))
	}
	return pattern, errors.Join(errs...)
}

// re2 translates a pattern of either form and holds that it compiles and needs at least one character.
func re2(pattern string) (string, error) {
	out := pattern
	if body, flags, ok := literal(pattern); ok {
		var err error
		if out, err = fromJavaScript(body, flags); err != nil {
			return "", err
		}
	}
	re, err := regexp.Compile("(?i)" + out)
	switch {
	case strings.TrimSpace(pattern) == "":
		return "", errors.New("is missing")
	case err != nil:
		return "", fmt.Errorf("%w (RE2 syntax: no look-ahead, look-behind or back-reference)", err)
	case re.MatchString(""):
		return "", errors.New("matches the empty text, so it would stop everything; name at least one character")
	}
	return out, nil
}

// Cost is about how many steps matching a pattern takes for each byte of a text at worst: the length of its program.
func Cost(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0 // it does not compile, which is told elsewhere
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0
	}
	return len(prog.Inst)
}

// literal splits /body/flags.
func literal(pattern string) (body, flags string, ok bool) {
	end := strings.LastIndexByte(pattern, '/')
	if len(pattern) < 3 || pattern[0] != '/' || end < 2 || strings.Trim(pattern[end+1:], "abcdefghijklmnopqrstuvwxyz") != "" {
		return "", "", false
	}
	return pattern[1:end], pattern[end+1:], true
}

var jsEscape = regexp.MustCompile(`\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|/|\\)`)

func fromJavaScript(body, flags string) (string, error) {
	on, off := "", "i" // the scanner ignores case unless told otherwise
	for _, f := range flags {
		switch f {
		case 'i':
			off = ""
		case 'm', 's':
			on += string(f)
		case 'g', 'u', 'v', 'y', 'd':
		default:
			return "", fmt.Errorf("unknown flag %q behind the closing /", f)
		}
	}
	body = jsEscape.ReplaceAllStringFunc(body, func(m string) string {
		switch m {
		case `\/`:
			return "/"
		case `\\`:
			return m
		}
		return `\x{` + strings.Trim(m[2:], "{}") + "}"
	})
	switch {
	case off != "":
		return "(?" + on + "-" + off + ":" + body + ")", nil
	case on != "":
		return "(?" + on + ":" + body + ")", nil
	}
	return body, nil
}
