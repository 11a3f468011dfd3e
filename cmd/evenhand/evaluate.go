package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/terms"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/judge/hybrid"
)

type evaluateCmd struct {
	Output      string   `arg:"" optional:"" help:"The answer to score; - or nothing reads stdin." default:"-"`
	Input       *string  `help:"The prompt, for --check input or both." placeholder:"TEXT"`
	Config      *os.File `help:"JSON file with mode, model, api_key, categories, custom_terms, check." name:"evaluator" placeholder:"FILE"`
	Mode        string   `help:"deterministic, llm or both." placeholder:"MODE"`
	Check       string   `help:"input, output or both." placeholder:"SIDE"`
	Categories  []string `help:"gender, race, age, disability, religion." placeholder:"NAME"`
	CustomTerms []string `help:"More terms to flag." placeholder:"TERM"`
}

func (evaluateCmd) Help() string {
	return `Each distinct term takes 0.15 off 1.0. In the modes llm and both a language model (settings judge.*, or OPENAI_API_KEY) rates the
text from 1 to 5; the lowest score holds. 1.0 passes. Exit status 3 when it does not pass, or there is no score.

Examples:
  evenhand evaluate "He is too old to learn."
  evenhand evaluate --mode both --check both --input "Who should lead?" "Ask Bob, he is young."
  evenhand evaluate --categories gender,age --custom-terms manpower,chairman,elderly "Manpower planning for elderly staff"`
}

// Run evaluates one text.
func (cmd *evaluateCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	s, err := c.load(defaultSettings())
	if err != nil {
		return err
	}
	models, err := newAsking(s, nil)
	if err != nil {
		return err
	}
	defer models.close()
	cfg := models.hybridConfig()
	if cmd.Config != nil {
		if err := readEvaluator(cmd.Config, &cfg); err != nil {
			return &settingsError{err}
		}
	}
	if cmd.Mode != "" {
		cfg.Mode = cmd.Mode
	}
	if cmd.Check != "" {
		cfg.Check = cmd.Check
	}
	if cmd.Categories != nil {
		cfg.Categories = cmd.Categories
	}
	if cmd.CustomTerms != nil {
		cfg.CustomTerms = cmd.CustomTerms
	}
	if cfg.Check != string(audit.Output) && cmd.Input == nil {
		alone := ", too"
		if cfg.Check == string(audit.Input) {
			alone = " alone"
		}
		return &settingsError{errors.New("--input: is missing; the check looks at the prompt" + alone)}
	}
	text := cmd.Output
	if text == "-" && cfg.Check != string(audit.Input) {
		b, err := io.ReadAll(std.input(ctx, "the text"))
		if err != nil {
			return err
		}
		if text = string(b); text == "" { // an empty one would pass
			return &settingsError{errors.New(`the text: is missing; nothing came from stdin (an empty one is "")`)}
		}
	}
	var prompt string
	if cmd.Input != nil {
		prompt = *cmd.Input
	}
	if !utf8.ValidString(text) {
		return &settingsError{errNotUTF8}
	}
	res, err := models.hybrid(ctx, cfg, hybrid.Input{Tenant: cmp.Or(s.Tenant.Default, "default"), Input: prompt, Output: text})
	if err != nil {
		if audit.KindOf(err) == audit.KindInvalid {
			return &settingsError{errors.Unwrap(err)}
		}
		return err
	}
	enc := json.NewEncoder(std.out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(res); err != nil {
		return err
	}
	if !res.Pass {
		return exitCode(3)
	}
	return nil
}

// readEvaluator reads the file of --evaluator over the settings. It names every fault at once.
func readEvaluator(file io.Reader, cfg *terms.Config) error {
	var given map[string]any
	b, err := io.ReadAll(file)
	if err == nil {
		given, err = object(b)
	}
	if err != nil {
		return fmt.Errorf("--evaluator: %w", err)
	}
	const text, list = "a string", "an array of strings"
	keys := map[string]struct {
		into  any
		wants string
	}{
		"mode": {&cfg.Mode, text}, "model": {&cfg.Model, text}, "api_key": {&cfg.APIKey, text}, "check": {&cfg.Check, text},
		"categories": {&cfg.Categories, list}, "custom_terms": {&cfg.CustomTerms, list},
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		key, known := keys[name]
		raw, _ := given[name].(json.RawMessage)
		if !known {
			errs = append(errs, fmt.Errorf("--evaluator: %s: is not a key of an evaluator%s", ingest.Shown(name), meant(name, slices.Sorted(maps.Keys(keys)))))
		} else if json.Unmarshal(raw, key.into) != nil { // Go's error may quote a key
			errs = append(errs, fmt.Errorf("--evaluator: %s: wants %s", name, key.wants))
		}
	}
	return errors.Join(errs...)
}
