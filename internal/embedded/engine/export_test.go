package engine

// PrivatePort is the engine's own native port, which the guard keeps from others.
func (e *Engine) PrivatePort() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ports.native
}
