//! Two-body decays.

use super::four_vector::FourVector;
use super::random::Random;

/// A particle whose lifetime is too short for a sharp mass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resonance {
    /// The peak of the mass distribution, GeV.
    pub(crate) mass: f64,
    /// The peak's full width at half height, GeV.
    pub(crate) width: f64,
}

impl Resonance {
    /// The maximum distance of a mass from the peak, in widths.
    const REACH: f64 = 12.0;

    /// A mass drawn from the relativistic Breit-Wigner distribution, `density(m²) ∝ 1 / ((m² - M²)² + M²Γ²)`, within [`Self::REACH`] widths
    /// of `M`: `m² = M² + MΓ t` with `t` from a Cauchy distribution.
    pub(crate) fn draw_mass(&self, random: &mut Random) -> f64 {
        loop {
            let t = random.cauchy();
            if t.abs() < 2.0 * Self::REACH {
                return (self.mass * (self.mass + self.width * t)).sqrt();
            }
        }
    }
}

/// The momentum of each decay product in the parent's rest frame: `p = √((M² - (a+b)²)(M² - (a-b)²)) / 2M`; `None` if `a + b > M`.
pub(crate) fn rest_frame_momentum(parent_mass: f64, a: f64, b: f64) -> Option<f64> {
    let square = |x: f64| x * x;
    let product = (square(parent_mass) - square(a + b)) * (square(parent_mass) - square(a - b));
    (a + b <= parent_mass).then(|| product.sqrt() / (2.0 * parent_mass))
}

/// Decays `parent`, of invariant mass `parent_mass`, into particles with masses `a` and `b`: back to back in its rest frame, in a
/// direction uniform on the sphere, then boosted. `None` if `a + b > parent_mass`.
pub(crate) fn two_body(parent: &FourVector, parent_mass: f64, a: f64, b: f64, random: &mut Random) -> Option<[FourVector; 2]> {
    let p = rest_frame_momentum(parent_mass, a, b)?;
    let [x, y, z] = random.on_sphere().map(|c| c * p);
    let first = FourVector::with_mass(a, [x, y, z]).boosted_from_rest_of(parent, parent_mass);
    Some([first, *parent - first])
}
