package clickhouse

// Begin makes the sink believe that it does not know what became of a query.
func (s *Sink) Begin(id string) { s.pending.doubt(id, nil) }

// Unsettled counts the inserts of unknown outcome.
func (s *Sink) Unsettled() int { return len(s.pending.list()) }

// InsertSettings and ReadSettings are what goes with inserts and with reads of markers.
func (o Options) InsertSettings() map[string]any { return o.insertSettings() }
func (o Options) ReadSettings() map[string]any   { return o.readSettings() }
