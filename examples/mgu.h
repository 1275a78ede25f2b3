/* The minimal gated unit (Zhou, Wu, Zhang, Zhou 2016): a GRU whose one gate forgets and resets.

     f = s(W_f x + U_f h' + b_f)
     z = tanh(W_z x + U_z (f * h') + b_z)
     h = (1 - f) * h' + f * z

   Backward, from the gradient D that reaches h, with k = f * h' and dk = U_z^T da_z:

     dz = D * f    df = D * (z - h') + dk * h'    dh' = (1 - f) * D + dk * f

   Gates: f, z. Tape: f, z, k. U_z reads k, so a step has two products, and both functions two
   stages: forward 0, then 1; backward 1, then 0. r->reset passes k forward and dk backward.
   carnn.h includes this file once for each instruction set: see "a cell of your own" there. */

static CARNN__INLINE void CARNN__K(mgu_forward)(const carnn__lanes *r) {
    vec before = get(r, r->before, 0);
    if (r->stage == 0) {
        vec f = sigmoid(gate(r, 0)), k = mul(f, before);
        put(r, r->tape, 0, f);
        put(r, r->tape, 2, k);
        put(r, r->reset, 0, k);
    } else {
        vec f = get(r, r->tape, 0), z = tanh(gate(r, 1));
        put(r, r->tape, 1, z);
        put(r, r->out, 0, fma(f, sub(z, before), before));
    }
}

static CARNN__INLINE void CARNN__K(mgu_backward)(const carnn__lanes *r) {
    vec f = get(r, r->tape, 0), z = get(r, r->tape, 1), D = reaching(r);
    if (r->stage == 1) {
        gate_back(r, 1, tanh_back(z, mul(D, f)));
    } else {
        vec before = get(r, r->before, 0), dk = get(r, r->reset, 0);
        vec df = fma(dk, before, mul(D, sub(z, before)));
        gate_back(r, 0, sigmoid_back(f, df));
        put(r, r->dh, 0, fma(dk, f, fnma(f, D, D)));
    }
}
