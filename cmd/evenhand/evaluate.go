package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/terms"
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
	return `Each distinct term takes 0.15 off 1.0; 1.0 passes. Exit status 3 when it does not pass.

Examples:
  evenhand evaluate "He is too old to learn."
  evenhand evaluate --categories gender,age --custom-terms manpower,chairman,elderly "Manpower planning for elderly staff"`
}

// Run evaluates one text.
func (cmd *evaluateCmd) Run(ctx context.Context, std *stdio) error {
	cfg := terms.DefaultConfig()
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
	res, err := terms.Evaluate(ctx, cfg, cmd.Input, text)
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
