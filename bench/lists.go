package main

import "context"

func lists(ctx context.Context, o options) error { return nil }
