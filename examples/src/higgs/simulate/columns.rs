//! The 28 columns: 21 measured by the detector, and 7 invariant masses computed from these.

use super::detector::{Seen, Tag};
use super::four_vector::FourVector;

/// The label and the features, with the names and in the order of the UCI set.
pub(crate) const NAMES: [&str; 29] = [
    "label",
    "lepton_pT",
    "lepton_eta",
    "lepton_phi",
    "missing_energy_magnitude",
    "missing_energy_phi",
    "jet_1_pt",
    "jet_1_eta",
    "jet_1_phi",
    "jet_1_b-tag",
    "jet_2_pt",
    "jet_2_eta",
    "jet_2_phi",
    "jet_2_b-tag",
    "jet_3_pt",
    "jet_3_eta",
    "jet_3_phi",
    "jet_3_b-tag",
    "jet_4_pt",
    "jet_4_eta",
    "jet_4_phi",
    "jet_4_b-tag",
    "m_jj",
    "m_jjj",
    "m_lv",
    "m_jlv",
    "m_bb",
    "m_wbb",
    "m_wwbb",
];

/// The divisor of each column, so that values are of order one, as in the UCI set: momenta, masses
/// (GeV) and tags are divided by their mean, angles by their standard deviation (φ: that of a uniform angle, π/√3).
#[rustfmt::skip]
const UNITS: [f32; 28] = [
    61.7, 1.06, PHI, 51.95, PHI,
    108.0, 1.06, PHI, 1.077,
    72.55, 1.09, PHI, 0.924,
    50.5, 1.15, PHI, 0.811,
    35.87, 1.23, PHI, 0.625,
    117.2, 217.0, 90.8, 186.5, 135.0, 316.1, 517.3,
];
const PHI: f32 = 1.813_799_4;

const W_MASS: f64 = 80.4;
const TOP_MASS: f64 = 172.5;
const CHARGED_HIGGS_MASS: f64 = 325.0;

/// The first column of jet `n`, from 0 to 3.
fn jet_column(n: usize) -> usize {
    5 + 4 * n
}

/// All 28 columns.
pub(crate) fn features(seen: &Seen) -> [f32; 28] {
    let [mx, my] = seen.missing;
    let mut x = [0.0_f64; 28];
    x[..3].copy_from_slice(&[seen.lepton.pt(), seen.lepton.eta(), seen.lepton.phi()]);
    x[3..5].copy_from_slice(&[(mx * mx + my * my).sqrt(), my.atan2(mx)]);
    for (n, jet) in seen.jets.iter().enumerate() {
        let tag = f64::from(jet.tag as u8);
        x[jet_column(n)..][..4].copy_from_slice(&[jet.momentum.pt(), jet.momentum.eta(), jet.momentum.phi(), tag]);
    }
    let mut scaled = [0.0_f32; 28];
    for ((scaled, x), unit) in scaled.iter_mut().zip(x).zip(UNITS) {
        *scaled = x as f32 / unit;
    }
    let low: [f32; 21] = std::array::from_fn(|c| scaled[c]);
    scaled[21..].copy_from_slice(&masses(&low));
    scaled
}

/// The seven masses, computed only from the 21 low-level columns as they are written, so that they can be recomputed from a file.
///
/// - `m_jj`: the two jets attributed to a W. Of the six ways to choose two jets as b, those with the most b-tags; of these, the one
///   whose other two jets have the mass nearest to that of a W.
/// - `m_lv`: lepton and neutrino, whose momentum along the beam follows from the W's mass ([`neutrino`]).
/// - `m_jjj`, `m_jlv`: each W with a b, as possible decay products of tops; of the two pairings, the one nearer to two tops.
/// - `m_bb`: the two b, as possible decay products of the light Higgs.
/// - `m_wbb`: these with the W that gives the mass nearer to the charged Higgs.
/// - `m_wwbb`: all of them.
pub(crate) fn masses(low: &[f32; 21]) -> [f32; 7] {
    let value = |c: usize| f64::from(low[c] * UNITS[c]);
    let vector = |c: usize| FourVector::massless(value(c), value(c + 1), value(c + 2));
    let lepton = vector(0);
    let jets: [FourVector; 4] = std::array::from_fn(|n| vector(jet_column(n)));
    let tags: [f32; 4] = std::array::from_fn(|n| (value(jet_column(n) + 3)) as f32);

    let (sin, cos) = value(4).sin_cos();
    let leptonic = lepton + neutrino(&lepton, value(3) * cos, value(3) * sin);
    let ([b_1, b_2], hadronic) = named(&jets, tags);

    let tops = |near: FourVector, far: FourVector| [(hadronic + near).mass(), (leptonic + far).mass()];
    let misfit = |[a, b]: [f64; 2]| (a - TOP_MASS).abs() + (b - TOP_MASS).abs();
    let (one, other) = (tops(b_1, b_2), tops(b_2, b_1));
    let [m_jjj, m_jlv] = if misfit(one) <= misfit(other) { one } else { other };

    let pair = b_1 + b_2;
    let charged = [(hadronic + pair).mass(), (leptonic + pair).mass()];
    let off = charged.map(|m| (m - CHARGED_HIGGS_MASS).abs());
    let m_wbb = if off[0] <= off[1] { charged[0] } else { charged[1] };

    let all = [hadronic.mass(), m_jjj, leptonic.mass(), m_jlv, pair.mass(), m_wbb, (hadronic + leptonic + pair).mass()];
    std::array::from_fn(|m| all[m] as f32 / UNITS[21 + m])
}

/// The two jets chosen as b, and the sum of the other two.
fn named(jets: &[FourVector; 4], tags: [f32; 4]) -> ([FourVector; 2], FourVector) {
    const WAYS: [([usize; 2], [usize; 2]); 6] =
        [([0, 1], [2, 3]), ([0, 2], [1, 3]), ([0, 3], [1, 2]), ([1, 2], [0, 3]), ([1, 3], [0, 2]), ([2, 3], [0, 1])];
    let mut best = (f32::NEG_INFINITY, f64::INFINITY, WAYS[0], FourVector::default());
    for way in WAYS {
        let ([b_1, b_2], [j_1, j_2]) = way;
        let tagged = tags[b_1] + tags[b_2];
        if tagged < best.0 {
            continue;
        }
        let w = jets[j_1] + jets[j_2];
        let off = (w.mass() - W_MASS).abs();
        if tagged > best.0 || off < best.1 {
            best = (tagged, off, way, w);
        }
    }
    let ([b_1, b_2], _) = best.2;
    ([jets[b_1], jets[b_2]], best.3)
}

/// The neutrino that carried the missing momentum: its momentum along the beam is chosen so that `m(l ν) = m(W)`,
///
/// `pz = (μ pz_l ± E_l √(μ² - pT_l² pT_ν²)) / pT_l²`, `μ = m_W²/2 + pT_l · pT_ν`;
///
/// the smaller of the two solutions, or if smearing leaves no real one, their real part (`m_lv` is then above the W's mass).
fn neutrino(lepton: &FourVector, mx: f64, my: f64) -> FourVector {
    let pt_squared = lepton.px * lepton.px + lepton.py * lepton.py;
    let mu = 0.5 * W_MASS * W_MASS + lepton.px * mx + lepton.py * my;
    let centre = mu * lepton.pz / pt_squared;
    let spread = (mu * mu - pt_squared * (mx * mx + my * my)).max(0.0).sqrt() * lepton.e / pt_squared;
    let pz = if centre > 0.0 { centre - spread } else { centre + spread };
    FourVector::with_mass(0.0, [mx, my, pz])
}

/// Checks at compile time that [`Tag`] has the three values that the b-tag columns use.
const _: () =
    assert!(Tag::None as u8 == 0 && Tag::Loose as u8 == 1 && Tag::Tight as u8 == 2, "b-tags are 0, 1, 2 before scaling");
