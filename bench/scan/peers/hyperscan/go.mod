module github.com/evenhand/evenhand/bench/scan/peers/hyperscan

go 1.26.0

require github.com/flier/gohs v1.2.3 // indirect
