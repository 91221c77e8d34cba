use brisk_nn::Philox;
use brisk_nn::tensor::program::Device;
use brisk_vision::Patches;

const PATCHES: Patches = Patches { image: [6, 5, 2], patch: [2, 2] };

fn images(n: usize) -> Vec<f32> {
    let philox = Philox::new(7);
    // The values of an image are correlated, so that variances differ.
    (0..n * 60).map(|i| philox.normal(0, i as u64) + 2.0 * philox.normal(1, i as u64 / 60)).collect()
}

/// The covariance of patches, computed patch by patch.
fn reference(images: &[f32]) -> Vec<f64> {
    let mut sums = vec![0.0; 64];
    let mut n = 0.0;
    for image in images.chunks(60) {
        for (top, left) in (0..5).flat_map(|top| (0..4).map(move |left| (top, left))) {
            let value = |i: usize| f64::from(image[((top + i / 4) * 5 + left + i / 2 % 2) * 2 + i % 2]);
            (0..64).for_each(|at| sums[at] += value(at / 8) * value(at % 8));
            n += 1.0;
        }
    }
    sums.iter().map(|sum| sum / n).collect()
}

#[test]
fn eigenvalues_and_vectors_compose_the_covariance() {
    let device = Device::cpu().expect("the CPU");
    // More images than are multiplied at a time, and not a multiple of that number.
    let images = images(150);
    let covariance = PATCHES.covariance(&device, &images).expect("a covariance");
    let (values, vectors) = (covariance.eigenvalues(), covariance.eigenvectors());
    assert!(values.windows(2).all(|pair| pair[0] >= pair[1]), "largest first: {values:?}");
    for (at, expected) in reference(&images).iter().enumerate() {
        let found: f64 =
            (0..8).map(|i| f64::from(values[i]) * f64::from(vectors[8 * i + at / 8]) * f64::from(vectors[8 * i + at % 8])).sum();
        assert!((found - expected).abs() < 1e-4 * values[0] as f64, "element {at}: {found}, expected {expected}");
    }
}

#[test]
fn whitened_patches_are_uncorrelated_with_variance_1() {
    let device = Device::cpu().expect("the CPU");
    let images = images(100);
    let filters = PATCHES.covariance(&device, &images).expect("a covariance").filters(0.0);
    let covariance = reference(&images);
    for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
        let product: f64 =
            (0..64).map(|at| f64::from(filters[8 * a + at / 8]) * covariance[at] * f64::from(filters[8 * b + at % 8])).sum();
        let expected = f64::from(u8::from(a == b));
        assert!((product - expected).abs() < 1e-3, "filters {a} and {b}: {product}");
    }
}

#[test]
fn directions_without_variance_have_no_filters() {
    let device = Device::cpu().expect("the CPU");
    let mut images = images(100);
    // The second channel is constant.
    images.iter_mut().skip(1).step_by(2).for_each(|value| *value = 0.0);
    let filters = PATCHES.covariance(&device, &images).expect("a covariance").filters(5e-4);
    let (first, second): (Vec<f32>, Vec<f32>) = filters.chunks(2).map(|pixel| (pixel[0], pixel[1])).unzip();
    assert!(first.chunks(4).all(|filter| filter.iter().any(|value| value.abs() > 0.01)), "{filters:?}");
    assert!(second.iter().all(|value| value.abs() < 1e-3), "{filters:?}");
    assert_eq!(filters[32..], filters[..32], "four of eight directions vary");
    let constant = PATCHES.covariance(&device, &[0.0; 120]).expect("a covariance").filters(5e-4);
    assert_eq!(constant, [0.0; 64], "nothing varies");
}

#[test]
fn negatives_come_after_the_filters() {
    let device = Device::cpu().expect("the CPU");
    let covariance = PATCHES.covariance(&device, &images(3)).expect("a covariance");
    let (filters, both) = (covariance.filters(0.1), covariance.filters_with_negatives(0.1));
    assert_eq!(both[..64], filters, "the filters");
    assert!(both[64..].iter().zip(&filters).all(|(negative, filter)| *negative == -filter), "and their negatives");
}

#[test]
fn images_without_patches_are_refused() {
    #[track_caller]
    fn refuses(patches: Patches, images: &[f32], expected: &str) {
        let device = Device::cpu().expect("the CPU");
        let error = patches.covariance(&device, images).expect_err("no covariance").to_string();
        assert_eq!(error, expected, "{patches:?}");
    }
    refuses(PATCHES, &[0.0; 61], "61 values are not whole images of [6, 5, 2] (height, width, channels); give a multiple of 60");
    refuses(PATCHES, &[], "0 values are not whole images of [6, 5, 2] (height, width, channels); give a multiple of 60");
    refuses(
        Patches { patch: [2, 6], ..PATCHES },
        &[0.0; 60],
        "patches of [2, 6] pixels do not fit into images of [6, 5, 2] (height, width, channels)",
    );
    let mut images = images(2);
    images[77] = f32::NAN;
    refuses(PATCHES, &images, "image 1 has a value that is not finite; standardise images by deviations that are not 0");
}
