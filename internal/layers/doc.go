// Package layers holds the house rules as tests: imports point one way, the pipeline knows seams
// only, every package says once what it is, and nothing but main ends the process.
package layers
