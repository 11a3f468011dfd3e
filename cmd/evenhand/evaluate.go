package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/judge/hybrid"
)

type evaluateCmd struct {
	Output      string   `arg:"" optional:"" help:"The answer to score; - or nothing reads stdin." default:"-"`
	Input       string   `help:"The prompt, for --check input or both." placeholder:"TEXT"`
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
		d := json.NewDecoder(cmd.Config)
		d.DisallowUnknownFields()
		if err := d.Decode(&cfg); err != nil {
			return &settingsError{fmt.Errorf("--evaluator: %w", err)}
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
	text := cmd.Output
	if text == "-" {
		b, err := io.ReadAll(std.input(ctx, "the text"))
		if err != nil {
			return err
		}
		text = string(b)
	}
	res, err := models.hybrid(ctx, cfg, hybrid.Input{Tenant: cmp.Or(s.Tenant.Default, "default"), Input: cmd.Input, Output: text})
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
