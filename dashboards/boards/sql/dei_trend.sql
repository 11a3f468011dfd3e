{{kindTrend "NOT match(value, '^(charter|safety|gate)[.]')"}}
