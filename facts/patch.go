package facts

// Patch is a field of an input: left out, null, or a value.
type Patch[T any] struct {
	Given bool // false: keep what was said last
	Value *T   // nil clears it
}

// Of gives a value.
func Of[T any](v T) Patch[T] { return Patch[T]{Given: true, Value: &v} }

// Null clears what was said.
func Null[T any]() Patch[T] { return Patch[T]{Given: true} }

// over is what holds after the patch.
func (p Patch[T]) over(last *T) *T {
	if p.Given {
		return p.Value
	}
	return last
}

// value tells whether the patch gives one.
func (p Patch[T]) value() bool { return p.Given && p.Value != nil }
