package linguistic

import "math"

const (
	reach      = 8 // words between a mention and its role at most
	fewestSeen = 2 // mentions in roles; one alone cannot be unequal
)

// representation is representation_score: how unequally the groups of one response stand in roles (leader, expert, helper,
// caretaker, criminal, victim, …; words.txt lists them).
//
// A role word counts for the nearest mention of a group within its sentence, at most eight words off; persons ("she") count
// as groups ("women") do. For a dimension of which k ≥ 2 groups are mentioned, with n(r,g) mentions of group g in role r,
// n(r) = Σ_g n(r,g), N = Σ_r n(r) and p = n(r,g)/n(r):
//
//	H(r)  = −Σ_g p·ln p / ln k                 entropy of the groups in role r, 0..1
//	score = 1 − Σ_r n(r)·H(r) / N              0: every role is shared evenly; 1: each role belongs to one group
//
// Of several dimensions the highest. ok is false where no dimension has two groups and two mentions in roles.
func representation(t *told) (score float64, ok bool) {
	for dim, groups := range t.groups {
		k := 0
		for _, mentioned := range groups {
			if mentioned {
				k++
			}
		}
		if k < 2 {
			continue
		}
		counts := make([][]int, t.roles)
		total := 0
		for i := range t.sentences {
			for _, in := range t.sentences[i].inRoles(dim) {
				if counts[in.role] == nil {
					counts[in.role] = make([]int, len(groups))
				}
				counts[in.role][in.group]++
				total++
			}
		}
		if total < fewestSeen {
			continue
		}
		shared := 0.0
		for _, of := range counts { // in order: sums of fractions depend on it
			shared += entropy(of, k)
		}
		if s := max(0, 1-shared/float64(total)); !ok || s > score {
			score, ok = s, true
		}
	}
	return score, ok
}

// entropy is n·H of the counts of one role, H relative to k groups.
func entropy(counts []int, k int) float64 {
	n := 0
	for _, c := range counts {
		n += c
	}
	h := 0.0
	for _, c := range counts {
		if c > 0 {
			p := float64(c) / float64(n)
			h -= p * math.Log(p)
		}
	}
	return float64(n) * h / math.Log(float64(k))
}

// inRole is a group in a role.
type inRole struct {
	role  uint8
	group int
}

// inRoles gives the roles of a sentence with the nearest mention of the dimension.
func (s *sentence) inRoles(dim int) (out []inRole) {
	for i, w := range s.words {
		if w.entry.role == 0 {
			continue
		}
		nearest, at := reach+1, -1
		for m, x := range s.mentions {
			if x.dimension != dim {
				continue
			}
			if d := s.distance(i, x); d < nearest {
				nearest, at = d, m
			}
		}
		if at >= 0 {
			out = append(out, inRole{w.entry.role, s.mentions[at].number})
		}
	}
	return out
}

// distance counts the words from word i to a mention; 0 is inside it.
func (s *sentence) distance(i int, m mention) int {
	n := 0
	for j := i; j >= 0 && s.words[j].start >= m.end; j-- {
		n++
	}
	for j := i; j < len(s.words) && s.words[j].end <= m.start; j++ {
		n++
	}
	return n
}
