//! Finding the highest point of a curve, and where it crosses a level.

/// Half the golden section's complement: what a step keeps.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Where a function is largest between two ends, and its value there: the best of `cells + 1` places, then the golden
/// section about it. Values that are no numbers count as the smallest.
pub fn highest(of: impl Fn(f64) -> f64, low: f64, high: f64, cells: u32) -> (f64, f64) {
    let of = |at: f64| Some(of(at)).filter(|value| value.is_finite()).unwrap_or(f64::NEG_INFINITY);
    let step = (high - low) / f64::from(cells);
    let at = |n: u32| low + step * f64::from(n);
    let mut best = (low, f64::NEG_INFINITY);
    for place in (0..=cells).map(at) {
        let value = of(place);
        if value > best.1 {
            best = (place, value);
        }
    }
    let (mut left, mut right) = ((best.0 - step).max(low), (best.0 + step).min(high));
    let mut one = right - GOLDEN * (right - left);
    let mut other = left + GOLDEN * (right - left);
    let (mut at_one, mut at_other) = (of(one), of(other));
    // 30 steps: to a millionth of a cell.
    for _ in 0..30 {
        if at_one >= at_other {
            (right, other, at_other) = (other, one, at_one);
            one = right - GOLDEN * (right - left);
            at_one = of(one);
        } else {
            (left, one, at_one) = (one, other, at_other);
            other = left + GOLDEN * (right - left);
            at_other = of(other);
        }
    }
    let middle = f64::midpoint(left, right);
    let found = (middle, of(middle));
    if found.1 > best.1 { found } else { best }
}

/// Where a function that grows passes from no more than `level` to more; `inside` is not above it, `outside` is.
pub fn crossing(of: impl Fn(f64) -> f64, level: f64, mut inside: f64, mut outside: f64) -> f64 {
    for _ in 0..40 {
        let middle = f64::midpoint(inside, outside);
        if of(middle) <= level {
            inside = middle;
        } else {
            outside = middle;
        }
        if (outside - inside).abs() <= 1e-7 * (1.0 + inside.abs()) {
            break;
        }
    }
    f64::midpoint(inside, outside)
}

/// The simplex method (J. A. Nelder and R. Mead, "A simplex method for function minimization", 1965), for a maximum of
/// two or three parameters: where it is and how high.
pub fn simplex<const N: usize>(
    of: impl Fn(&[f64; N]) -> f64,
    start: [f64; N],
    steps: [f64; N],
) -> ([f64; N], f64) {
    let of = |at: &[f64; N]| Some(of(at)).filter(|value| value.is_finite()).unwrap_or(f64::NEG_INFINITY);
    let corner = |n: usize| {
        let mut at = start;
        at[n] += steps[n];
        at
    };
    let mut all: Vec<([f64; N], f64)> =
        std::iter::once(start).chain((0..N).map(corner)).map(|at| (at, of(&at))).collect();
    for _ in 0..600 {
        all.sort_by(|one, other| other.1.total_cmp(&one.1));
        let spread = all[0].1 - all[N].1;
        if spread.is_finite() && spread < 1e-10 {
            break;
        }
        let worst = all[N];
        let mut centre = [0.0; N];
        for (at, _) in &all[..N] {
            for (sum, own) in centre.iter_mut().zip(at) {
                *sum += own / f64::from(u32::try_from(N).unwrap_or(1));
            }
        }
        let towards = |by: f64| {
            let mut at = centre;
            for (own, from) in at.iter_mut().zip(&worst.0) {
                *own += by * (*own - from);
            }
            (at, of(&at))
        };
        let mirrored = towards(1.0);
        if mirrored.1 > all[0].1 {
            let further = towards(2.0);
            all[N] = if further.1 > mirrored.1 { further } else { mirrored };
        } else if mirrored.1 > all[N - 1].1 {
            all[N] = mirrored;
        } else {
            let nearer = if mirrored.1 > worst.1 { towards(0.5) } else { towards(-0.5) };
            if nearer.1 > worst.1.max(mirrored.1) {
                all[N] = nearer;
            } else {
                let best = all[0].0;
                for (at, value) in &mut all[1..] {
                    for (own, towards) in at.iter_mut().zip(&best) {
                        *own = f64::midpoint(*own, *towards);
                    }
                    *value = of(at);
                }
            }
        }
    }
    all.sort_by(|one, other| other.1.total_cmp(&one.1));
    all[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tops_and_crossings_are_found_and_what_is_no_number_is_passed_by() {
        let (at, value) = highest(|x| if x < 0.5 { f64::NAN } else { -(x - 2.0) * (x - 2.0) }, 0.0, 9.0, 7);
        assert!((at - 2.0).abs() < 1e-5 && value > -1e-9, "{at}");
        assert!((crossing(|x| x * x, 2.0, 0.0, 9.0) - 2.0_f64.sqrt()).abs() < 1e-6);
        let (at, _) =
            simplex(|[x, y]: &[f64; 2]| -(x - 1.0).powi(2) - 3.0 * (y + 2.0).powi(2), [5.0, 5.0], [1.0; 2]);
        assert!((at[0] - 1.0).abs() < 1e-4 && (at[1] + 2.0).abs() < 1e-4, "{at:?}");
    }
}
