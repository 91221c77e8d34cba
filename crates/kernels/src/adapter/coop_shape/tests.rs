use wgpu::CooperativeScalarType::{F16, F32, I32};
use wgpu::{CooperativeMatrixProperties, CooperativeScalarType};

use super::CoopShape;

fn listed(m_size: u32, n_size: u32, k_size: u32, types: [CooperativeScalarType; 2]) -> CooperativeMatrixProperties {
    let [ab_type, cr_type] = types;
    CooperativeMatrixProperties { m_size, n_size, k_size, ab_type, cr_type, saturating_accumulation: false }
}

#[test]
fn square_ones_of_f16_with_sums_in_f32_are_taken_and_the_larger_first() {
    let (eight, sixteen) = (listed(8, 8, 8, [F16, F32]), listed(16, 16, 16, [F16, F32]));
    assert_eq!(CoopShape::listed(&[eight, sixteen]), Some(CoopShape::Sixteen));
    assert_eq!(CoopShape::listed(&[eight]), Some(CoopShape::Eight));
    let others = [
        listed(16, 8, 16, [F16, F32]),
        listed(8, 8, 8, [F32, F32]),
        listed(16, 16, 16, [F16, F16]),
        listed(16, 16, 32, [I32, I32]),
    ];
    assert_eq!(CoopShape::listed(&others), None, "what WGSL has no words for, or what rounds the sums");
    assert_eq!(CoopShape::listed(&[]), None);
}
