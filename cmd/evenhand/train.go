package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/train"
)

type trainCmd struct {
	Data     []string           `arg:"" help:"Labelled JSONL files, or folders of them (see detectors/classifier/data)." type:"existingpath"`
	Out      string             `help:"Model file to write; the card stands beside it as .md." default:"model.bin" placeholder:"FILE"`
	Seed     uint64             `help:"Same data, recipe and seed give the same bytes." default:"1"`
	Epochs   int                `help:"Passes over the data; 0 takes the recipe's." default:"0" placeholder:"N"`
	LeaveOut []string           `help:"Sources that are not learnt from, to be judged on." placeholder:"SOURCE"`
	Quota    map[string]int     `help:"Most rows of a source." placeholder:"SOURCE=ROWS"`
	Weight   map[string]float64 `help:"What a row of a source counts." placeholder:"SOURCE=FACTOR"`
	Silent   []string           `help:"Heads of the classifier that are learnt and never answer; 'none' lets all answer that keep their bounds." placeholder:"HEAD"`
	Vectors  string             `help:"Word vectors to start from, of 'make vectors': for words that are rare in the data." type:"existingfile" placeholder:"FILE"`
	Encoder  string             `help:"Calibrate this encoder (of tools/train/export.py) with the classifier that is set, instead of learning." type:"existingfile" placeholder:"FILE"`
	Swaps    int                `help:"Counterfactuals of each row that mentions a group; -1 takes the recipe's." default:"-1" placeholder:"N"`
}

func (trainCmd) Help() string {
	return `Learns the classifier's model on this machine, in minutes, from files such as

  {"id":"1","text":"…","label":{"bias":1},"characteristic":["age"],"split":"train","source":"mine"}

A label that is missing is unknown. Rows with split "dev" are kept for 'evenhand eval'. "teacher":{"bias":0.83} gives a
larger model's probability to learn from; of English texts with neither label nor teacher the encoder is the teacher
(setting classifier.encoder_model). Use the model with the setting classifier.model.

Example:
  evenhand train detectors/classifier/data mine.jsonl --out mine.bin
  evenhand train detectors/classifier/data --encoder raw.bin --out encoder.bin`
}

// Run trains a model and writes it with its card.
func (cmd *trainCmd) Run(c *cli, std *stdio) error {
	rows, err := readData(cmd.Data)
	if err != nil {
		return err
	}
	s, err := c.load(defaultSettings())
	if err != nil {
		return err
	}
	r := train.DefaultRecipe()
	if cmd.Encoder != "" {
		return cmd.calibrate(s.Classifier, rows, r, std)
	}
	r.Seed, r.LeaveOut = cmd.Seed, cmd.LeaveOut
	if cmd.Epochs > 0 {
		r.Epochs = cmd.Epochs
	}
	if len(cmd.Silent) > 0 {
		r.Silent = cmd.Silent
	}
	if cmd.Swaps >= 0 {
		r.Swaps = cmd.Swaps
	}
	if cmd.Vectors != "" {
		if r.Vectors, err = readVectors(cmd.Vectors); err != nil {
			return err
		}
	}
	maps.Copy(r.Quota, cmd.Quota)
	maps.Copy(r.Weight, cmd.Weight)
	e, err := s.Classifier.loadEncoder()
	if err != nil {
		return err
	}
	labelled, err := train.Label(rows, e)
	if err != nil {
		return err
	}
	if labelled > 0 {
		std.progress("%d texts without a label: encoder %s is their teacher", labelled, e.Meta.Version)
	}
	res, err := train.Train(rows, r, std.progress)
	if err != nil {
		return err
	}
	return cmd.write(std, res.File, res.Card(r), res.Model.Meta.Version)
}

// calibrate writes an encoder with what its answers mean beside a classifier's.
func (cmd *trainCmd) calibrate(s classifierSettings, rows []dataset.Row, r train.Recipe, std *stdio) error {
	m, err := s.load()
	if err != nil {
		return err
	}
	file, err := os.ReadFile(cmd.Encoder)
	if err != nil {
		return fmt.Errorf("--encoder: %w", err)
	}
	adviser, err := s.loadOthers()
	if err != nil {
		return err
	}
	res, err := train.Calibrate(file, m, adviser, rows, r, std.progress)
	if err != nil {
		return err
	}
	return cmd.write(std, res.File, res.Card(), res.Meta.Version)
}

// progress writes a line of how far long work is.
func (s *stdio) progress(format string, a ...any) { fmt.Fprintf(s.err, format+"\n", a...) }

func (cmd *trainCmd) write(std *stdio, file []byte, text, version string) error {
	if err := os.WriteFile(cmd.Out, file, 0o644); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	card := strings.TrimSuffix(cmd.Out, filepath.Ext(cmd.Out)) + ".md"
	if err := os.WriteFile(card, []byte(text), 0o644); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	fmt.Fprintf(std.out, "model %s: %s, card %s\n", version, cmd.Out, card)
	return nil
}

func readVectors(path string) (*classifier.Vectors, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--vectors: %w", err)
	}
	defer func() { _ = f.Close() }()
	return classifier.ReadVectors(f)
}

// readData reads files and the .jsonl files of folders, in the order of their names.
func readData(paths []string) (rows []dataset.Row, err error) {
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, "*.jsonl")); err != nil || len(files) == 0 {
				return nil, &settingsError{fmt.Errorf("%s: no .jsonl files in it", path)}
			}
			slices.Sort(files)
		}
		for _, f := range files {
			read, err := dataset.ReadFile(f)
			if err != nil {
				return nil, err
			}
			rows = append(rows, read...)
		}
	}
	return rows, nil
}
