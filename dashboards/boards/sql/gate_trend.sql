{{kindTrend "startsWith(value, 'gate.')"}}
