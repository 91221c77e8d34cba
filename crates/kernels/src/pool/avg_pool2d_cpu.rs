use crate::conv::window::Images;
use crate::cpu::blocks::each_row_in_f32;
use crate::pool::avg_pool2d::AvgPool2d;
use crate::storage::element::Element;
use crate::vectorised::inlined;

pub(crate) fn run<T: Element>(kernel: &AvgPool2d, x: &[T], y: &mut [T]) {
    let shape = &kernel.shape;
    let Images { height, width, n_channels, .. } = shape.y();
    each_row_in_f32(
        width * n_channels,
        y,
        inlined!(|row, y| {
            let (image, i) = (row / height, row % height);
            y.fill(0.0);
            for (j, y) in y.chunks_exact_mut(n_channels).enumerate() {
                for h in shape.covered(0, i).0 {
                    for w in shape.covered(1, j).0 {
                        let x = &x[((image * shape.x.height + h) * shape.x.width + w) * n_channels..];
                        for (y, &x) in y.iter_mut().zip(x) {
                            *y += x.widen();
                        }
                    }
                }
                let divisor = (kernel.n_counted(0, i) * kernel.n_counted(1, j)) as f32;
                for y in y {
                    *y /= divisor;
                }
            }
        }),
    );
}

pub(crate) fn grad<T: Element>(kernel: &AvgPool2d, grad_y: &[T], grad_x: &mut [T]) {
    let shape = &kernel.shape;
    let Images { height, width, n_channels, .. } = shape.x;
    let y = shape.y();
    each_row_in_f32(
        width * n_channels,
        grad_x,
        inlined!(|row, grad_x| {
            let (image, h) = (row / height, row % height);
            grad_x.fill(0.0);
            for (w, grad_x) in grad_x.chunks_exact_mut(n_channels).enumerate() {
                for i in shape.covering(0, h) {
                    for j in shape.covering(1, w) {
                        let divisor = (kernel.n_counted(0, i) * kernel.n_counted(1, j)) as f32;
                        let grad_y = &grad_y[((image * y.height + i) * y.width + j) * n_channels..];
                        for (grad_x, &grad_y) in grad_x.iter_mut().zip(grad_y) {
                            *grad_x += grad_y.widen() / divisor;
                        }
                    }
                }
            }
        }),
    );
}
