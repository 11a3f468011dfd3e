// Package config reads a configuration from defaults, one YAML file, EVENHAND_* environment variables
// and key=value flags, the later over the earlier. Every fault is reported at once, with the key as
// the operator wrote it; unknown keys and variables are refused, so that a typo is not a default.
//
// The variable of a key is EVENHAND_ and the key in capitals with dots as underscores
// (kafka.brokers: EVENHAND_KAFKA_BROKERS). A secret may come from a file: EVENHAND_…_FILE.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/evenhand/evenhand/internal/secret"
)

// Prefix begins every variable of the program.
const Prefix = "EVENHAND_"

// Sources are where values come from besides the defaults.
type Sources struct {
	File string   // YAML file; "" for none
	Env  []string // as os.Environ gives it
	Set  []string // key=value
	// Foreign are EVENHAND_* variables that are not keys and belong to somebody else.
	Foreign []string
	// Alias maps a variable to a key where the rule does not give it.
	Alias map[string]string
}

// Load fills dst, a pointer to a struct with koanf tags that already holds the defaults.
func Load(dst any, s Sources) error {
	fields := map[string]reflect.Type{}
	collect("", reflect.TypeOf(dst).Elem(), fields)
	k := koanf.New(".")
	var errs []error
	merge := func(values map[string]any) {
		if err := k.Load(confmap.Provider(values, "."), nil); err != nil {
			errs = append(errs, err)
		}
	}
	if s.File != "" {
		y, doc := koanf.New("."), &document{isValue: func(key string) bool { return fields[key] != nil }}
		if err := y.Load(file.Provider(s.File), doc); err != nil {
			return fmt.Errorf("config file %s: %w", s.File, err)
		}
		where := func(key string) string {
			if line, ok := doc.lines[key]; ok {
				return fmt.Sprintf("%s, line %d", filepath.Base(s.File), line)
			}
			return filepath.Base(s.File)
		}
		for _, key := range y.Keys() {
			_, known := fields[key]
			switch {
			case known || insideValue(key, fields):
			case !holdsKeys(key, fields):
				errs = append(errs, fmt.Errorf("%s: unknown key in %s%s", key, where(key), nearest(key, fields)))
			case y.Get(key) == nil: // all its keys are comments
				y.Delete(key)
			default:
				errs = append(errs, fmt.Errorf("%s: holds a value in %s, wants keys of its own%s", key, where(key), below(key, fields)))
				y.Delete(key)
			}
		}
		if err := k.Merge(y); err != nil {
			errs = append(errs, err)
		}
	}
	merge(fromEnv(s, fields, &errs))
	set := map[string]any{}
	for _, kv := range s.Set {
		key, value, ok := strings.Cut(kv, "=")
		_, known := fields[key]
		switch {
		case !known:
			errs = append(errs, fmt.Errorf("--set %s: wants key=value with a known key%s", kv, nearest(key, fields)))
			continue
		case !ok:
			errs = append(errs, fmt.Errorf("--set %s: wants a value behind it: --set %s=VALUE", kv, key))
			continue
		}
		set[key] = value
	}
	merge(set)
	var met mapstructure.Metadata
	err := k.UnmarshalWithConf("", dst, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: dst, TagName: "koanf", WeaklyTypedInput: true,
		Metadata: &met, DecodeHook: mapstructure.ComposeDecodeHookFunc(
			given, mapstructure.StringToTimeDurationHookFunc(), stringToList, finite, mapstructure.TextUnmarshallerHookFunc()),
	}})
	if err != nil {
		errs = append(errs, decodeFaults(err, fields)...)
	}
	return errors.Join(append(errs, unknownInside(met.Unused, fields)...)...)
}

// unknownInside names the keys that no entry of a list has; those outside of lists have been named.
func unknownInside(unused []string, fields map[string]reflect.Type) (errs []error) {
	slices.Sort(unused)
	for _, key := range unused {
		list, _, ok := strings.Cut(key, "[")
		t := fields[list]
		if !ok || t == nil || t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct {
			continue
		}
		at := strings.LastIndexByte(key, '.') + 1
		entry := map[string]reflect.Type{}
		collect("", t.Elem(), entry)
		hint := "; known are " + strings.Join(slices.Sorted(maps.Keys(entry)), ", ")
		if near := nearest(key[at:], entry); strings.HasPrefix(near, "; did") {
			hint = near
		}
		errs = append(errs, fmt.Errorf("%s: unknown key%s", key, hint))
	}
	return errs
}

// fromEnv reads the variables, values of …_FILE from their files.
func fromEnv(s Sources, fields map[string]reflect.Type, errs *[]error) map[string]any {
	keys := map[string]string{}
	for key := range fields {
		keys[Prefix+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))] = key
	}
	maps.Copy(keys, s.Alias)
	out, by := map[string]any{}, map[string]string{}
	set := func(key, name, value string) {
		was, twice := out[key]
		switch {
		case twice && value == "": // one that says nothing gives way
			return
		case twice && was != "" && was != value:
			*errs = append(*errs, fmt.Errorf("%s and %s set the same key to different values; unset one", min(by[key], name), max(by[key], name)))
		}
		out[key], by[key] = value, name
	}
	for _, kv := range s.Env {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, Prefix) || slices.Contains(s.Foreign, name) {
			continue
		}
		if key, ok := keys[name]; ok {
			if value != "" || mayBeEmpty(fields[key]) { // compose's ${X:-} is a variable that is not set
				set(key, name, value)
			}
			continue
		}
		base, isFile := strings.CutSuffix(name, "_FILE")
		key, ok := keys[base]
		if !isFile || !ok || fields[key] != reflect.TypeFor[secret.Text]() {
			*errs = append(*errs, fmt.Errorf("%s: no such setting; `evenhand config` lists them", name))
			continue
		}
		b, err := os.ReadFile(value)
		if err != nil {
			*errs = append(*errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		set(key, name, strings.TrimSpace(string(b)))
	}
	return out
}

// mayBeEmpty tells whether "" is a value of a key.
func mayBeEmpty(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.String || t.Kind() == reflect.Struct
}

// given refuses what would be read as false, as 0 or as nanoseconds though nobody said so.
func given(from, to reflect.Type, data any) (any, error) {
	switch {
	case from.Kind() == reflect.String && data == "" && (to.Kind() == reflect.Bool || reflect.Int <= to.Kind() && to.Kind() <= reflect.Float64):
		return nil, errors.New("is empty; give a value or leave it out")
	case to == reflect.TypeFor[time.Duration]() && reflect.Int <= from.Kind() && from.Kind() <= reflect.Float64 && !reflect.ValueOf(data).IsZero():
		return nil, fmt.Errorf("wants a duration: %vs, %vms", data, data)
	}
	return data, nil
}

// Setting is one key with its value as text; secrets are hidden.
type Setting struct{ Key, Env, Value string }

// List gives all settings of a configuration struct, sorted by key.
func List(c any) []Setting {
	var out []Setting
	walk("", reflect.Indirect(reflect.ValueOf(c)), func(key string, v reflect.Value) {
		text := fmt.Sprint(v.Interface())
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			text = fmt.Sprint(v.Elem().Interface())
		} else if v.Kind() == reflect.Pointer {
			text = ""
		} else if list, ok := v.Interface().([]string); ok {
			text = strings.Join(list, ",") // as a variable takes it
		}
		if u, err := url.Parse(text); err == nil && u.User != nil {
			text = u.Redacted()
		}
		out = append(out, Setting{key, Prefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_")), text})
	})
	slices.SortFunc(out, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return out
}

func walk(prefix string, v reflect.Value, f func(string, reflect.Value)) {
	for i := range v.NumField() {
		key := prefix + v.Type().Field(i).Tag.Get("koanf")
		if v.Type().Field(i).Anonymous { // koanf:",squash": its keys stand among its neighbours
			walk(prefix, v.Field(i), f)
			continue
		}
		if isGroup(v.Field(i).Type()) {
			walk(key+".", v.Field(i), f)
		} else {
			f(key, v.Field(i))
		}
	}
}

func collect(prefix string, t reflect.Type, out map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		key := prefix + cmp.Or(f.Tag.Get("koanf"), strings.ToLower(f.Name))
		if f.Anonymous { // koanf:",squash": its keys stand among its neighbours
			collect(prefix, f.Type, out)
			continue
		}
		if isGroup(f.Type) {
			collect(key+".", f.Type, out)
		} else {
			out[key] = f.Type
		}
	}
}

func isGroup(t reflect.Type) bool { return t.Kind() == reflect.Struct }

// insideValue tells whether the key lies under a known key that holds a list or map of its own.
func insideValue(key string, fields map[string]reflect.Type) bool {
	for k, t := range fields {
		if strings.HasPrefix(key, k+".") && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
			return true
		}
	}
	return false
}

// nearest suggests the known key that shares the most with a mistyped one.
func nearest(key string, fields map[string]reflect.Type) string {
	best, score := "", len(key)/2
	for k := range fields {
		short := min(len(k), len(key))
		head, tail := 0, 0
		for head < short && k[head] == key[head] {
			head++
		}
		for tail < short-head && k[len(k)-1-tail] == key[len(key)-1-tail] {
			tail++
		}
		n := head + tail
		if n < 3 && len(k) > 2*len(key) { // two letters of a short one say nothing of a long one
			continue
		}
		if n > score || n == score && best != "" && k < best {
			best, score = k, n
		}
	}
	if best == "" {
		return "; `evenhand config` lists the known keys"
	}
	return "; did you mean " + best + "?"
}

// below names the key that a value given to a section may have meant.
func below(section string, fields map[string]reflect.Type) string {
	if _, ok := fields[section+".enabled"]; ok {
		return "; did you mean " + section + ".enabled?"
	}
	return nearest(section+".", fields)
}

// holdsKeys tells whether the key is the head of known ones.
func holdsKeys(key string, fields map[string]reflect.Type) bool {
	for k := range fields {
		if strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

// decodeFaults names each key whose value does not fit, with what would.
func decodeFaults(err error, fields map[string]reflect.Type) (out []error) {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, e := range many.Unwrap() {
			out = append(out, decodeFaults(e, fields)...)
		}
		return out
	}
	var at *mapstructure.DecodeError
	if !errors.As(err, &at) {
		return []error{err}
	}
	t := fields[at.Name()]
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	want := ""
	switch {
	case t == nil: // inside a list of ours
		return []error{fmt.Errorf("%s: %w", at.Name(), at.Unwrap())}
	case t == reflect.TypeFor[time.Duration]():
		want = "a duration such as 500ms or 2s"
	case t.Kind() == reflect.Bool:
		want = "true or false"
	case t.Kind() == reflect.Float64:
		want = "a number"
	case t.Kind() == reflect.String:
		want = "a text"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		want = "a list of entries with keys of their own; set it in the file"
	case t.Kind() == reflect.Slice:
		want = "a list"
	case t.Kind() == reflect.Map:
		want = "keys of its own; set it in the file"
	default:
		want = "a whole number"
	}
	return []error{fmt.Errorf("%s: wants %s", at.Name(), want)}
}

// finite refuses what is no number of a scale.
func finite(_, to reflect.Type, data any) (any, error) {
	if to.Kind() != reflect.Float64 {
		return data, nil
	}
	f, ok := data.(float64)
	if s, text := data.(string); text {
		var err error
		f, err = strconv.ParseFloat(s, 64)
		ok = err == nil
	}
	if ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return nil, errors.New("not a finite number")
	}
	return data, nil
}

// stringToList splits "a, b" where a list of strings is wanted. Other lists have no form as a text.
func stringToList(from, to reflect.Type, data any) (any, error) {
	if from.Kind() == reflect.String && to.Kind() == reflect.Slice && to.Elem().Kind() == reflect.Struct {
		return nil, errors.New("not a list")
	}
	if from.Kind() != reflect.String || to != reflect.TypeFor[[]string]() {
		return data, nil
	}
	out := []string{} // not nil, which would leave what is there
	for s := range strings.SplitSeq(data.(string), ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out, nil
}
