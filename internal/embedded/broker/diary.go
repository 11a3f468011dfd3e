package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// diary remembers across restarts what kfake does not tell: when a log was last rolled by a tick, and
// where the rings ended at earlier times, so that records can be dropped by age.
type diary struct {
	path string
	Tick map[string]mark   `json:"tick"` // by partition, see tickKey
	Ring map[string][]mark `json:"ring"` // by topic-partition, oldest first
	was  []byte            // as last written
}

// mark says that a partition ended at End at a time.
type mark struct {
	At  time.Time `json:"at"`
	End int64     `json:"end"`
}

// ahead is how far a mark may lie before now. One beyond it was made while the clock was wrong.
const ahead = time.Minute

const ringStep = 6 * time.Hour // between two marks of a ring

func openDiary(path string) (diary, error) {
	d := diary{path: path}
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	if d.Tick == nil || err != nil {
		d.Tick = map[string]mark{}
	}
	if d.Ring == nil || err != nil {
		d.Ring = map[string][]mark{}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, fmt.Errorf("diary: %w", err)
	}
	return d, nil
}

// save writes the diary when it changed, by way of a second file.
func (d *diary) save() error {
	raw, err := json.Marshal(d)
	if err != nil || string(raw) == string(d.was) {
		return err
	}
	if err := os.WriteFile(d.path+".new", raw, 0o600); err != nil {
		return fmt.Errorf("diary: %w", err)
	}
	if err := os.Rename(d.path+".new", d.path); err != nil {
		return fmt.Errorf("diary: %w", err)
	}
	d.was = raw
	return nil
}

// ring says up to which offset a ring's partition may be dropped: what was there ringAge ago, or what
// is above its share of bytes, taking records as equally large.
func (d *diary) ring(topic string, p *kfake.PartitionInfo, now time.Time, share int64) int64 {
	key := topic + "-" + strconv.Itoa(int(p.Partition))
	marks := slices.DeleteFunc(d.Ring[key], func(m mark) bool { return m.At.After(now.Add(ahead)) })
	if n := len(marks); n == 0 || now.Sub(marks[n-1].At) >= ringStep {
		marks = append(marks, mark{At: now.UTC(), End: p.HighWatermark})
	}
	to := p.LogStartOffset
	for len(marks) > 0 && now.Sub(marks[0].At) >= ringAge {
		to = max(to, marks[0].End)
		marks = marks[1:]
	}
	d.Ring[key] = marks
	if over := p.NumBytes - share; over > 0 {
		records := float64(p.HighWatermark - p.LogStartOffset)
		to = max(to, p.LogStartOffset+int64(records*float64(over)/float64(p.NumBytes)))
	}
	return to
}

// due tells whether a partition holds records that no tick has rolled for tickAfter. The first look
// at a partition starts its clock.
func (d *diary) due(topic string, p *kfake.PartitionInfo, now time.Time) bool {
	key := tickKey(topic, p.Partition)
	last, ok := d.Tick[key]
	if !ok {
		last.End = -1
	}
	if !ok || last.At.After(now.Add(ahead)) {
		d.Tick[key] = mark{At: now.UTC(), End: last.End}
		return false
	}
	return p.HighWatermark > 0 && p.HighWatermark != last.End && now.Sub(last.At) >= tickAfter
}

// ticked notes that a tick was the partition's last record.
func (d *diary) ticked(topic string, partition int32, end int64, now time.Time) {
	d.Tick[tickKey(topic, partition)] = mark{At: now.UTC(), End: end}
}

// tickKey is the partition alone for llm.interactions, which was the only topic with ticks.
func tickKey(topic string, partition int32) string {
	if topic == kafkaconn.Interactions {
		return strconv.Itoa(int(partition))
	}
	return topic + "-" + strconv.Itoa(int(partition))
}
