{{kindTrend "startsWith(value, 'safety.')"}}
