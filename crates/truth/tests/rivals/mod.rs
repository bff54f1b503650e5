//! Small versions of other published methods, for comparison: vote, TruthFinder, Accu, AccuCopy without order, CRH,
//! LTM.
//!
//! Each method gets the values that the first chain of each site read, and chooses values for each item.

use std::collections::{BTreeMap, HashMap};

use webfill_truth::{Claim, FieldShape};

/// The values that sites state, by item (a field of a row).
#[derive(Debug)]
pub struct Votes {
    pub several: bool,
    pub sites: usize,
    pub items: Vec<Ballot>,
}

/// The values that sites state about one item.
#[derive(Debug)]
pub struct Ballot {
    pub item: u32,
    /// All values that any site states.
    pub values: Vec<u32>,
    /// Each site, with the indexes of its values in `values`.
    pub sites: Vec<(usize, Vec<usize>)>,
}

pub type Choices = HashMap<u32, Vec<u32>>;

impl Votes {
    pub fn new(shape: FieldShape, claims: &[Claim]) -> Votes {
        let mut by_item: BTreeMap<u32, BTreeMap<u32, Vec<u32>>> = BTreeMap::new();
        let mut sites = 0;
        for claim in claims.iter().filter(|claim| claim.anchor == 0) {
            sites = sites.max(claim.site as usize + 1);
            let values = by_item
                .entry(claim.item)
                .or_default()
                .entry(claim.site)
                .or_default();
            if !values.contains(&claim.value) {
                values.push(claim.value);
            }
        }
        let items = by_item
            .into_iter()
            .map(|(item, of_sites)| {
                let mut values: Vec<u32> = of_sites.values().flatten().copied().collect();
                values.sort_unstable();
                values.dedup();
                let place = |value: &u32| values.binary_search(value).expect("it was collected");
                let sites = of_sites
                    .iter()
                    .map(|(site, own)| (*site as usize, own.iter().map(place).collect()))
                    .collect();
                Ballot {
                    item,
                    values,
                    sites,
                }
            })
            .collect();
        Votes {
            several: shape == FieldShape::Several,
            sites,
            items,
        }
    }

    /// Chooses the best value of each item; for lists, all values whose score is at least `bound`.
    fn choose(&self, scores: &[Vec<f64>], bound: f64) -> Choices {
        let choose = |(ballot, scores): (&Ballot, &Vec<f64>)| {
            let mut order: Vec<usize> = (0..scores.len()).collect();
            order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
            let count = match self.several {
                true => order
                    .iter()
                    .filter(|place| scores[**place] >= bound)
                    .count()
                    .max(1),
                false => 1,
            };
            (
                ballot.item,
                order[..count]
                    .iter()
                    .map(|place| ballot.values[*place])
                    .collect(),
            )
        };
        self.items.iter().zip(scores).map(choose).collect()
    }

    /// For each value, the sum of the weights of its sites.
    fn sum_weights(&self, weight: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
        let sum = |ballot: &Ballot| {
            let mut sums = vec![0.0; ballot.values.len()];
            for (site, places) in &ballot.sites {
                for place in places {
                    sums[*place] += weight(*site);
                }
            }
            sums
        };
        self.items.iter().map(sum).collect()
    }

    /// For each site, the mean score of the values that it claims.
    fn site_means(&self, scores: &[Vec<f64>]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); self.sites];
        for (ballot, scores) in self.items.iter().zip(scores) {
            for (site, places) in &ballot.sites {
                for place in places {
                    sums[*site].0 += scores[*place];
                    sums[*site].1 += 1.0;
                }
            }
        }
        sums.into_iter()
            .map(|(sum, count): (f64, f64)| sum / count.max(1.0))
            .collect()
    }
}

/// The value that most sites state; for lists, the values that at least half of the sites state.
pub fn choose_by_majority(votes: &Votes) -> Choices {
    let mut shares = votes.sum_weights(|_| 1.0);
    for (ballot, shares) in votes.items.iter().zip(&mut shares) {
        shares
            .iter_mut()
            .for_each(|share| *share /= ballot.sites.len() as f64);
    }
    votes.choose(&shares, 0.5)
}

/// TruthFinder (Yin, Han, Yu 2008), without implications between values. The damping is .3, as in the paper.
pub fn truth_finder(votes: &Votes) -> Choices {
    const DAMPING: f64 = 0.3;
    let mut trust = vec![0.9; votes.sites];
    let mut scores = Vec::new();
    for _ in 0..20 {
        scores = votes.sum_weights(|site: usize| -(1.0 - f64::min(trust[site], 1.0 - 1e-9)).ln());
        for score in scores.iter_mut().flatten() {
            *score = 1.0 / (1.0 + (-DAMPING * *score).exp());
        }
        trust = votes.site_means(&scores);
    }
    // A value without any support has a score of .5, so the bound for values of lists must be higher.
    votes.choose(&scores, 0.75)
}

/// Accu (Dong, Berti-Équille, Srivastava 2009), with 100 possible wrong values per item. Each value of a list is judged
/// separately.
pub fn accu(votes: &Votes) -> Choices {
    accu_with_weights(votes, |_, _| 1.0)
}

/// A short version of AccuCopy. The more rare values a site shares with a better site, the less its vote counts.
pub fn accu_copy(votes: &Votes) -> Choices {
    let mut shared: HashMap<(usize, usize), (f64, f64)> = HashMap::new();
    for ballot in &votes.items {
        for (one, own) in ballot.sites.iter().take(40) {
            for (other, theirs) in ballot
                .sites
                .iter()
                .take(40)
                .filter(|(other, _)| other < one)
            {
                let entry = shared.entry((*one, *other)).or_default();
                entry.1 += 1.0;
                let claimed = |place: &usize| {
                    ballot
                        .sites
                        .iter()
                        .filter(|(_, all)| all.contains(place))
                        .count()
                };
                // A shared value counts as rare if only these two sites state it, although at least two other sites
                // state something else.
                if own == theirs
                    && ballot.sites.len() > 3
                    && own.iter().all(|place| claimed(place) == 2)
                {
                    entry.0 += 1.0;
                }
            }
        }
    }
    let copies: HashMap<(usize, usize), f64> = shared
        .into_iter()
        .filter(|(_, (same, all))| *same >= 3.0 && same / all > 0.02)
        .map(|(pair, _)| (pair, 0.8))
        .collect();
    accu_with_weights(votes, |ballot, place| {
        let (site, own) = &ballot.sites[place];
        ballot.sites[..place]
            .iter()
            .filter(|(_, theirs)| theirs == own)
            .map(|(other, _)| 1.0 - copies.get(&(*site, *other)).copied().unwrap_or(0.0))
            .product()
    })
}

fn accu_with_weights(votes: &Votes, weight: impl Fn(&Ballot, usize) -> f64) -> Choices {
    const WRONG_VALUES: f64 = 100.0;
    let mut accuracy = vec![0.8; votes.sites];
    let mut scores: Vec<Vec<f64>> = Vec::new();
    for _ in 0..20 {
        scores = votes
            .items
            .iter()
            .map(|ballot| {
                let mut counts: Vec<f64> = vec![0.0; ballot.values.len()];
                for (place, (site, own)) in ballot.sites.iter().enumerate() {
                    let accuracy: f64 = accuracy[*site];
                    let odds = accuracy / (1.0 - accuracy);
                    for (value, count) in counts.iter_mut().enumerate() {
                        if own.contains(&value) {
                            let factor = if votes.several {
                                odds
                            } else {
                                odds * WRONG_VALUES
                            };
                            *count += weight(ballot, place) * factor.ln();
                        } else if votes.several {
                            *count -= weight(ballot, place) * odds.ln();
                        }
                    }
                }
                if votes.several {
                    return counts
                        .iter()
                        .map(|count: &f64| 1.0 / (1.0 + (-count).exp()))
                        .collect();
                }
                let most = counts.iter().fold(0.0, |a: f64, b| a.max(*b));
                let sum: f64 = counts.iter().map(|count: &f64| (count - most).exp()).sum();
                let rest = (WRONG_VALUES - counts.len() as f64).max(0.0) * (-most).exp();
                counts
                    .iter()
                    .map(|count| (count - most).exp() / (sum + rest))
                    .collect()
            })
            .collect();
        accuracy = votes
            .site_means(&scores)
            .iter()
            .map(|mean| mean.clamp(0.01, 0.99))
            .collect();
    }
    votes.choose(&scores, 0.5)
}

/// CRH (Li et al. 2014), with a loss of one for each wrong value.
pub fn crh(votes: &Votes) -> Choices {
    let mut weights = vec![1.0; votes.sites];
    let mut shares: Vec<Vec<f64>> = Vec::new();
    for _ in 0..20 {
        shares = votes.sum_weights(|site| weights[site]);
        for (ballot, shares) in votes.items.iter().zip(&mut shares) {
            let all: f64 = ballot.sites.iter().map(|(site, _)| weights[*site]).sum();
            shares.iter_mut().for_each(|share| *share /= all.max(1e-9));
        }
        let chosen = votes.choose(&shares, 0.5);
        let mut losses = vec![0.0; votes.sites];
        let mut claims = vec![0.0; votes.sites];
        for ballot in &votes.items {
            for (site, places) in &ballot.sites {
                let wrong = places
                    .iter()
                    .filter(|place| !chosen[&ballot.item].contains(&ballot.values[**place]))
                    .count();
                losses[*site] += wrong as f64;
                claims[*site] += places.len() as f64;
            }
        }
        let losses: Vec<f64> = losses
            .iter()
            .zip(&claims)
            .map(|(loss, all): (&f64, &f64)| (loss + 0.01) / (all + 0.01))
            .collect();
        let sum: f64 = losses.iter().sum();
        weights = losses.iter().map(|loss| -(loss / sum).ln()).collect();
    }
    votes.choose(&shares, 0.5)
}

/// The Latent Truth Model (Zhao et al. 2012), by collapsed Gibbs sampling.
pub fn ltm(votes: &Votes) -> Choices {
    const ROUNDS: usize = 60;
    const BURN_IN: usize = 20;
    // Prior counts for wrong values, then for true ones: how often a site does not claim such a value, and how often it
    // does. As in the paper, sites rarely claim wrong values.
    const PRIOR: [[f64; 2]; 2] = [[90.0, 10.0], [50.0, 50.0]];
    let mut dice = fastrand::Rng::with_seed(7);
    let mut truth: Vec<Vec<usize>> = votes
        .items
        .iter()
        .map(|ballot| ballot.values.iter().map(|_| dice.usize(..2)).collect())
        .collect();
    let mut counts = vec![PRIOR; votes.sites];
    for (ballot, truth) in votes.items.iter().zip(&truth) {
        for (place, truth) in truth.iter().enumerate() {
            for (site, own) in &ballot.sites {
                counts[*site][*truth][usize::from(own.contains(&place))] += 1.0;
            }
        }
    }
    let mut sums: Vec<Vec<f64>> = truth.iter().map(|truth| vec![0.0; truth.len()]).collect();
    for round in 0..ROUNDS {
        for (item, ballot) in votes.items.iter().enumerate() {
            for place in 0..ballot.values.len() {
                let was = truth[item][place];
                let mut logarithms = [0.0_f64; 2];
                for (site, own) in &ballot.sites {
                    let claims = usize::from(own.contains(&place));
                    counts[*site][was][claims] -= 1.0;
                    for (state, logarithm) in logarithms.iter_mut().enumerate() {
                        let of = counts[*site][state];
                        *logarithm += (of[claims] / (of[0] + of[1])).ln();
                    }
                }
                let now =
                    usize::from(dice.f64() < 1.0 / (1.0 + (logarithms[0] - logarithms[1]).exp()));
                for (site, own) in &ballot.sites {
                    counts[*site][now][usize::from(own.contains(&place))] += 1.0;
                }
                truth[item][place] = now;
                if round >= BURN_IN {
                    sums[item][place] += now as f64 / (ROUNDS - BURN_IN) as f64;
                }
            }
        }
    }
    votes.choose(&sums, 0.5)
}

/// A method of choosing values, with its name.
pub type Method = (&'static str, fn(&Votes) -> Choices);

pub const METHODS: [Method; 6] = [
    ("vote", choose_by_majority),
    ("TruthFinder", truth_finder),
    ("Accu", accu),
    ("AccuCopy", accu_copy),
    ("CRH", crh),
    ("LTM", ltm),
];
