//! Does it matter which half of a pair came first?
//!
//! A setting may need longer to settle than the time between the halves. Then the second half still shows the
//! state of the first. The differences of the pairs then depend on their order, which was drawn at random.
//! The rank sum of the pairs in which the setting came first has an exact distribution (F. Wilcoxon, 1945;
//! with midranks for ties), which is counted here.

/// Most pairs that are counted.
const MOST: usize = 100;

/// The two-sided probability of such an uneven split of the ranks by chance; `first` says for each difference
/// whether the setting came first. It is 1 if all came in one order, or if there are too many to count.
#[must_use]
pub fn order_p(differences: &[f64], first: &[bool]) -> f64 {
    let n = differences.len().min(first.len());
    let chosen = first[..n].iter().filter(|first| **first).count();
    if chosen == 0 || chosen == n || n > MOST {
        return 1.0;
    }
    let ranks = doubled_ranks(&differences[..n]);
    let seen: usize = ranks.iter().zip(first).filter(|(_, first)| **first).map(|(rank, _)| rank).sum();
    let most: usize = ranks.iter().sum();
    // ways[k][s]: how many choices of k ranks sum to s.
    let mut ways = vec![vec![0.0_f64; most + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for rank in &ranks {
        for k in (1..=chosen).rev() {
            let (fewer, more) = ways.split_at_mut(k);
            for (sum, before) in more[0].iter_mut().skip(*rank).zip(&fewer[k - 1]) {
                *sum += before;
            }
        }
    }
    let all: f64 = ways[chosen].iter().sum();
    let below: f64 = ways[chosen][..=seen].iter().sum();
    let above: f64 = ways[chosen][seen..].iter().sum();
    (2.0 * below.min(above) / all).min(1.0)
}

/// Twice the midrank of each value, so that they are whole.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let same = values.iter().filter(|other| (*other - value).abs() <= 0.0).count();
        2 * below + same + 1
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_split_of_five_and_five_is_one_of_252_on_each_side() {
        let differences: Vec<f64> = (0..10).map(f64::from).collect();
        let first: Vec<bool> = (0..10).map(|n| n < 5).collect();
        assert!((order_p(&differences, &first) - 2.0 / 252.0).abs() < 1e-12);
        let mixed: Vec<bool> = (0..10).map(|n| n % 2 == 0).collect();
        assert!(order_p(&differences, &mixed) > 0.5);
        assert!((order_p(&differences, &[true; 10]) - 1.0).abs() < 1e-12);
        assert!((order_p(&[4.0; 10], &first) - 1.0).abs() < 1e-12, "ties say nothing");
    }
}
