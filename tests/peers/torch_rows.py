"""Rows of `carnn bench` in PyTorch: examples in a second of training, on one thread.

    torch_rows.py [NAME...]     rows whose name contains NAME; README.md says how to run it

Seconds are those of the processor, so that what else runs takes none of them. A value is the median
of several steps: forward, backward, clipping, optimiser."""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_


class ASReader(nn.Module):
    """Kadlec et al. 2016: the pointer's sum over the places of each candidate."""
    batch, text, asked, words, candidates = 32, 480, 24, 1226, 10

    def __init__(self, hidden, embedding):
        super().__init__()
        self.word = nn.Embedding(self.words, embedding)
        self.reads = nn.GRU(embedding, hidden, bidirectional=True)
        self.asks = nn.GRU(embedding, hidden, bidirectional=True)
        self.texts = torch.randint(self.words, (self.text, self.batch))
        self.questions = torch.randint(self.words, (self.asked, self.batch))
        # (text, batch, candidates): where each candidate stands
        at = torch.randint(self.candidates * 24, (self.text, self.batch, 1))
        self.places = (at == torch.arange(self.candidates)).float()
        self.places[:self.candidates] = torch.eye(self.candidates).unsqueeze(1)
        self.answer = torch.randint(self.candidates, (self.batch, 1))

    def forward(self):
        states = self.reads(self.word(self.texts))[0]
        last = self.asks(self.word(self.questions))[1]
        query = torch.cat([last[0], last[1]], 1)
        weight = torch.softmax((states * query).sum(2), 0)
        p = torch.einsum("tb,tbc->bc", weight, self.places)
        return -torch.log(p.gather(1, self.answer)).mean()


@torch.jit.script
def listen(forget, output, heard):
    """The listener of an RCRN: gates from two RNNs, its input from a third."""
    c = torch.zeros_like(heard[0])
    states = torch.jit.annotate(list[torch.Tensor], [])
    # unbind: the gradient of x[t] would be as large as x at every step
    for f, o, x in zip(forget.unbind(0), output.unbind(0), heard.unbind(0)):
        c = torch.lerp(x, c, f)
        states.append(o * torch.tanh(c))
    return torch.stack(states)


class BothWays(nn.Module):
    """Layers of LSTMs in both directions over padded texts. Packed ones take ten times the time:
    the gradient of what a step reads of them is as large as all of it."""

    def __init__(self, size, hidden, layers):
        super().__init__()
        self.one = nn.ModuleList(nn.LSTM(2 * hidden if i > 1 else size, hidden)
                                 for i in range(2 * layers))

    def forward(self, x, turned):
        for ahead, back in zip(self.one[::2], self.one[1::2]):
            at = turned.unsqueeze(2).expand(-1, -1, x.size(2))
            first, second = ahead(x)[0], back(x.gather(0, at))[0]
            x = torch.cat([first, second.gather(0, at[:, :, :1].expand_as(second))], 2)
        return x


class Texts(nn.Module):
    """64 texts of 16 to 256 words and their classes; an RCRN, or layers of LSTMs."""
    batch, classes, words = 32, 6, 1200

    def __init__(self, hidden, layers):
        super().__init__()
        size = 2 * hidden
        self.word = nn.Embedding(self.words, size)
        self.rnn = nn.ModuleList(BothWays(size, hidden, layers or 1)
                                 for _ in range(1 if layers else 3))
        self.top = nn.Linear(size, self.classes)
        length = torch.tensor([16 + i * 37 % 241 for i in range(64)])
        self.parts = [length[i] for i in torch.randperm(64).view(2, -1)]
        self.ids = [torch.randint(self.words, (int(part.max()), self.batch))
                    for part in self.parts]
        self.target = torch.randint(self.classes, (self.batch,))
        self.turn = 0

    def forward(self):
        ids, length = self.ids[self.turn % 2], self.parts[self.turn % 2]
        self.turn += 1
        step = torch.arange(len(ids)).unsqueeze(1)
        live = step < length
        turned = torch.where(live, length - 1 - step, step)
        x = self.word(ids)
        out = [rnn(x, turned) for rnn in self.rnn]
        if len(out) > 1:
            out = [listen(torch.sigmoid(out[0]), torch.sigmoid(out[1]), out[2])]
        pooled = out[0].masked_fill(~live.unsqueeze(2), -1e30).max(0)[0]
        return nn.functional.cross_entropy(self.top(pooled), self.target)


@torch.jit.script
def skip_steps(a, weight, both, skip: int):
    """h_t = tanh(a_t + Wh h_{t-1} + Wk h_{t-k}), one product where both states are there."""
    zero = torch.zeros_like(a[0])
    h = torch.jit.annotate(list[torch.Tensor], [])
    for t, x in enumerate(a.unbind(0)):
        if t >= skip:
            h.append(torch.tanh(torch.addmm(x, torch.cat([h[t - 1], h[t - skip]], 1), both)))
        else:
            h.append(torch.tanh(torch.addmm(x, h[t - 1] if t else zero, weight)))
    return h[-1]


class Pixels(nn.Module):
    """784 rows of one pixel, ten classes, skip connections over 28 steps."""
    batch, steps, classes = 50, 784, 10

    def __init__(self, hidden, skip):
        super().__init__()
        self.input = nn.Linear(1, hidden)
        self.both = nn.Parameter(torch.randn(2 * hidden, hidden) * 0.05)
        self.top = nn.Linear(hidden, self.classes)
        self.hidden, self.skip = hidden, skip
        self.pixels = torch.rand(self.steps, self.batch, 1)
        self.target = torch.randint(self.classes, (self.batch,))

    def forward(self):
        last = skip_steps(self.input(self.pixels), self.both[:self.hidden], self.both, self.skip)
        return nn.functional.cross_entropy(self.top(last), self.target)


class Characters(nn.Module):
    """A language model over 50 characters: steps of 100 that go on from one batch to the next."""
    steps, kinds = 100, 50

    def __init__(self, hidden, batch):
        super().__init__()
        self.batch = batch * self.steps
        self.letter = nn.Embedding(self.kinds, hidden)
        self.rnn = nn.LSTM(hidden, hidden)
        self.top = nn.Linear(hidden, self.kinds)
        self.ids = torch.randint(self.kinds, (self.steps + 1, batch))
        self.state = None

    def forward(self):
        out, state = self.rnn(self.letter(self.ids[:-1]), self.state)
        self.state = tuple(s.detach() for s in state)
        return nn.functional.cross_entropy(self.top(out.flatten(0, 1)), self.ids[1:].flatten())


ROWS = [
    ("cloze 128", "questions/s", lambda: ASReader(128, 64)),
    ("cloze 256", "questions/s", lambda: ASReader(256, 256)),
    ("rcrn 200", "texts/s", lambda: Texts(200, 0)),
    ("lstm 200, 3 layers", "texts/s", lambda: Texts(200, 3)),
    ("skip 64", "sequences/s", lambda: Pixels(64, 28)),
    ("characters 512", "characters/s", lambda: Characters(512, 32)),
]


def measure(model, least=3, seconds=4.0):
    optimizer = torch.optim.Adam(model.parameters(), 0.001)
    samples = []
    for _ in range(100):
        began = time.process_time()
        optimizer.zero_grad(set_to_none=True)
        model().backward()
        clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        samples.append(time.process_time() - began)
        if len(samples) > least and sum(samples) > seconds:
            break
    return model.batch / statistics.median(samples[1:])


torch.set_num_threads(1)
torch.manual_seed(1)
for name, unit, make in ROWS:
    if len(sys.argv) < 2 or any(asked in name for asked in sys.argv[1:]):
        print(f"{name + ', training':<40} {measure(make()):10.4g} {unit}", flush=True)
