"""What each step is for: its title, a sentence or two, and its formula in plain text and in TeX."""

from __future__ import annotations

Prose = tuple[str, str, str, str]  # title, idea, formula, TeX

# Blocks of lines: the kind of a step and its title; the idea; the formula; behind $ its TeX, where that is another.
_TEXT = r"""
# Sequences to numbers

pieces: Pieces
The text is cut into pieces, and every piece has a number. From here on the model sees only numbers.
text → ids
$ \text{text} \mapsto (i_1, \dots, i_n)

embedding: Embedding
Each number i picks its own row of a learned table E: a vector for the piece, the same wherever it stands. A fixed
scale s multiplies it.
x = scale · E[id]
$ x_t = s \cdot E_{i_t}

one_hot: One-hot embedding
Each number i becomes a vector of zeros with a single one, and a product with the table E picks its row. A fixed
scale s multiplies it.
x = scale · one_hot(id) E
$ x_t = s \cdot \mathrm{onehot}(i_t)\, E

beside: Embedding beside word vectors
A learned vector stands beside one that was learned elsewhere and never changes. Words that training never saw share
one learned vector.
x = [scale · E[id]; V[id]]
$ x_t = [\,s \cdot E_{i_t};\; V_{i_t}\,]

letters: Letters
Beside its number, every piece brings the letters it is written in, begin and end marked, 0 where it has no more. A
word that training never saw has these too.
piece → (l₁ … l_n)
$ \text{piece}_t \mapsto (l_{t1}, \dots, l_{tn})

spelling: Three letters at a time
Filters slide over the letters, three at a time, and of every filter the strongest answer anywhere in the word is
kept: endings, capitals, digits, hyphens.
s = max_i relu(W [l_i; l_i+1; l_i+2] + b)
$ s_t = \max_i \mathrm{relu}(W [\,l_{t,i};\, l_{t,i+1};\, l_{t,i+2}\,] + b)

beside_spelling: Embedding beside letters
A learned vector of the word stands beside what its letters say.
x = [scale · E[id]; s]
$ x_t = [\,s \cdot E_{i_t};\; s_t\,]

beside_both: Embedding beside word vectors and letters
A learned vector stands beside one that was learned elsewhere and never changes, and beside what the letters say.
Words that training never saw share one learned vector.
x = [scale · E[id]; V[id]; s]
$ x_t = [\,s \cdot E_{i_t};\; V_{i_t};\; s_t\,]

projected: To the model's width
A learned map brings the vectors to the width that the layers work with.
x' = W x + b

vectors: Vectors
The source is a sequence of vectors: the numbers as they came, less their mean in the training text, and divided by
their deviation there. From here on the model sees only these.
x = (value − mean) / deviation
$ x_t = (v_t - \mu) / \sigma

from_vectors: To the model's width
A learned map brings each vector to the width that the layers work with. It takes the place of the table of embeddings
that a text is read by.
x' = W x + b

filtered: Neighbours, and the model's width
Filters slide over the sequence and read each vector with those around it.
x'_t = Σ_k W_k x_t+k + b
$ x'_t = \sum_k W_k x_{t+k} + b

sinusoidal: Positions
Attention by itself sees a bag of words. Waves of different lengths give every place a pattern of its own.
PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(p / 10000^(2i/D))
$ PE_{p,2i} = \sin\!\left(p / 10000^{2i/D}\right),\quad PE_{p,2i+1} = \cos\!\left(p / 10000^{2i/D}\right)

sinusoidal_last: Positions
Attention by itself sees a bag of words. Waves of different lengths give every place p a pattern of its own. The last of
them is 10000 times as long as the first.
PE(p, 2i) = sin(p / 10000^(2i/(D−2))), PE(p, 2i+1) = cos(p / 10000^(2i/(D−2)))
$ PE_{p,2i} = \sin\!\left(p / 10000^{2i/(D-2)}\right),\quad PE_{p,2i+1} = \cos\!\left(p / 10000^{2i/(D-2)}\right)

halves: Positions
Attention by itself sees a bag of words. Waves of different lengths give every place p a pattern of its own. All sines
come before all cosines.
PE(p, i) = sin(p / 10000^(2i/D)), PE(p, D/2+i) = cos(p / 10000^(2i/D))
$ PE_{p,i} = \sin\!\left(p / 10000^{2i/D}\right),\quad PE_{p,D/2+i} = \cos\!\left(p / 10000^{2i/D}\right)

halves_last: Positions
Attention by itself sees a bag of words. Waves of different lengths give every place p a pattern of its own. All sines
come before all cosines, and the last wave is 10000 times as long as the first.
PE(p, i) = sin(p / 10000^(2i/(D−2))), PE(p, D/2+i) = cos(p / 10000^(2i/(D−2)))
$ PE_{p,i} = \sin\!\left(p / 10000^{2i/(D-2)}\right),\quad PE_{p,D/2+i} = \cos\!\left(p / 10000^{2i/(D-2)}\right)

learned: Positions
Attention by itself sees a bag of words. Every place has a learned vector of its own.
P[p], p = 0, 1, 2, …
$ P_p, \quad p = 0, 1, 2, \dots

placed: Embedding + position
The two are simply added: the vector now says which piece it is and where it stands.
x = embedding + position
$ x_t \leftarrow x_t + PE_t

# Attention

queries: Queries Q
What each piece asks for: a learned map of its vector, here the rows of the matrix that belong to this head.
q = W_q x + b_q

keys: Keys K
What each piece offers to be found by. A query fits a key when the two point the same way.
k = W_k x + b_k

values: Values V
What each piece hands over when it is attended to.
v = W_v x + b_v

slice: This head's features
Without learned maps each head simply sees its own share of the features.
q, k, v = x[head]
$ q, k, v = x_{[\text{head}]}

rotated: Rotary position
Each pair of features is rotated by an angle that grows with the place, so that a score depends on the distance
of query and key only.
rotate pair i of place p by p / 10000^(2i/K)
$ \begin{pmatrix} x'_{2i} \\ x'_{2i+1} \end{pmatrix} = \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta &
\cos\theta \end{pmatrix} \begin{pmatrix} x_{2i} \\ x_{2i+1} \end{pmatrix},\quad \theta = p / 10000^{2i/K}

dot: Scores q·k
How well each query fits each key: multiply feature by feature and add up. One row for each piece that asks.
e = q · k
$ e_{ts} = q_t^\top k_s

scaled: Scaled scores ÷ √K
Sums over more features spread wider, and the softmax would see almost only the largest. Dividing by √K keeps their
spread the same.
e = q · k / √K
$ e_{ts} = \frac{q_t^\top k_s}{\sqrt{K}}

general: Scores, general
A learned matrix says which features of the decoder's state go with which features of the source.
e = qᵀ W k
$ e_{ts} = q_t^\top W k_s

cosine: Scores, cosine
Only the angle between query and key counts, times a learned sharpness.
e = β · cos(q, k)
$ e_{ts} = \beta \, \frac{q_t^\top k_s}{\lVert q_t \rVert \lVert k_s \rVert}

additive: Scores, additive (Bahdanau)
A small network looks at query and key together and answers with one number: how well they fit.
e = vᵀ tanh(W_q q + W_k k + b)
$ e_{ts} = v^\top \tanh(W_q q_t + W_k k_s + b)

concat: Scores, concat (Luong)
A small network looks at query and key together and answers with one number: how well they fit.
e = vᵀ tanh(W_q q + W_k k)
$ e_{ts} = v^\top \tanh(W_q q_t + W_k k_s)

monotonic: Centre of the window
Local attention, monotonic: step t looks around source place t, and past the end around the last.
p = min(t, S − 1)
$ p_t = \min(t, S - 1)

predicted: Centre of the window
Local attention, predicted: the query itself says around which source place to look.
p = S · sigmoid(vᵀ tanh(W q))
$ p_t = S \cdot \sigma\!\left(v^\top \tanh(W q_t)\right)

masked: Masked scores
What must not be seen gets a score of minus infinity: what is written later, or what lies outside the window.
e = −∞ where hidden
$ e_{ts} \leftarrow -\infty \text{ where hidden}

softmax: Softmax: the weights
Each row of scores becomes shares: all positive, together 1, and exactly 0 where hidden. This is the heat map that
people plot.
α = exp(e) / Σ exp(e)
$ \alpha_{ts} = \frac{\exp e_{ts}}{\sum_{s'} \exp e_{ts'}}

relu: ReLU: the weights
Scores below zero count nothing; the others are divided by their sum.
α = max(e, 0) / Σ max(e, 0)
$ \alpha_{ts} = \frac{\max(e_{ts}, 0)}{\sum_{s'} \max(e_{ts'}, 0)}

normaliser: The weights
Each row of scores becomes weights by a function of its own, exactly 0 where hidden. The code below names it.
α = normalise(e)
$ \alpha_{ts} = \mathrm{normalise}(e_t)_s

hard: Hard choice
One place instead of a mixture: the most probable (in training it is drawn).
α = 1 at the largest, else 0
$ \alpha_{ts} = [\,s = \arg\max_{s'} p_{ts'}\,]

focus: Gaussian focus
Places near the centre count more. As in the paper the row is not normalised again: it sums to less than 1.
α = α · exp(−(s − p)² / 2σ²), σ = reach / 2
$ \alpha_{ts} \leftarrow \alpha_{ts} \exp\!\left(-\frac{(s - p_t)^2}{2\sigma^2}\right),\quad \sigma =
\tfrac{1}{2}\,\text{reach}

context: Σ weights · values
Each row is a mixture of the values, with the weights as shares: what was attended to, in one vector.
c = Σ_s α_s v_s
$ c_t = \sum_s \alpha_{ts} v_s

heads: Heads side by side
Every head has made a mixture of its own; they are put next to each other.
c = [c_1; …; c_H]
$ c = [\,c^{(1)}; \dots; c^{(H)}\,]

output_map: Output projection
A learned map lets the heads' findings mix.
y = W_o c + b_o

# Transformer layers

sum: Residual: add
The output of the block is added to its input, so that the input is not lost.
x + f(x)

layer_norm: Layer norm
Every piece's vector is brought to mean 0 and variance 1, then stretched and shifted by learned γ and β.
γ · (x − mean) / √(variance + ε) + β
$ \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta

rms_norm: RMS norm
Every piece's vector is divided by its size, then stretched by a learned γ.
γ · x / √(mean(x²) + ε)
$ \gamma \odot \frac{x}{\sqrt{\overline{x^2} + \varepsilon}}

batch_norm: Batch norm
Every feature is measured against its mean and variance in training, then stretched and shifted.
γ · (x − running mean) / √(running variance + ε) + β
$ \gamma \odot \frac{x - \hat\mu}{\sqrt{\hat\sigma^2 + \varepsilon}} + \beta

expand: Feed-forward: wide
Each piece by itself: a linear map to a wider vector; the activation removes what is below zero.
h = activation(W_1 x + b_1)
$ h = \phi(W_1 x + b_1)

gated: Feed-forward: wide, gated (SwiGLU)
Each piece by itself: a linear map to a wider vector, each number of which is multiplied by a gate.
h = silu(W_g x) · W_1 x
$ h = \mathrm{silu}(W_g x) \odot W_1 x

contract: Feed-forward: back
A linear map back to the width of the model: the change of the piece's vector.
y = W_2 h + b_2

contract_plain: Feed-forward: back
A linear map back to the width of the model: the change of the piece's vector.
y = W_2 h

# A recurrence in place of self-attention

ssru_forget: Forget gate (SSRU)
How much of what is remembered each unit keeps: 1 keeps all, 0 clears it. The piece alone decides.
f = σ(W_f x + b_f)
$ f_t = \sigma(W_f x_t + b_f)

ssru_candidate: Candidate (SSRU)
What the piece brings to remember.
g = W x
$ g_t = W x_t

ssru_cell: What is remembered (SSRU)
A mixture of what was remembered and what is new, unit by unit, with the forget gate as share: one vector for all
that is written so far.
c_t = f_t · c_t−1 + (1 − f_t) · g_t
$ c_t = f_t \odot c_{t-1} + (1 - f_t) \odot g_t

ssru_hidden: What is shown (SSRU)
Of what is remembered, the positive part is handed on.
h = relu(c)
$ h_t = \mathrm{relu}(c_t)

# Recurrent cells

elman: State
The new state is made of the input and the state before it: all that is remembered goes through here.
h = tanh(W_x x + b_x + W_h h' + b_h)
$ h_t = \tanh(W_x x_t + b_x + W_h h_{t-1} + b_h)

input_gate: Input gate
How much of the new candidate each unit writes down, from 0 to 1.
i = σ(W_x x + b_x + W_h h' + b_h)
$ i_t = \sigma(W_x x_t + b_x + W_h h_{t-1} + b_h)

forget_gate: Forget gate
How much of its old memory each unit keeps: 1 keeps all, 0 clears it.
f = σ(W_x x + b_x + W_h h' + b_h)
$ f_t = \sigma(W_x x_t + b_x + W_h h_{t-1} + b_h)

candidate: Candidate
What could be written into the memory now.
g = tanh(W_x x + b_x + W_h h' + b_h)
$ g_t = \tanh(W_x x_t + b_x + W_h h_{t-1} + b_h)

output_gate: Output gate
How much of its memory each unit shows.
o = σ(W_x x + b_x + W_h h' + b_h)
$ o_t = \sigma(W_x x_t + b_x + W_h h_{t-1} + b_h)

cell: Cell: the long memory
Old memory times the forget gate, plus the candidate times the input gate. Because it is a sum, its gradient does
not have to vanish.
c = f · c' + i · g
$ c_t = f_t \odot c_{t-1} + i_t \odot g_t

lstm_hidden: State
What is shown of the memory; the next step and the next layer see this.
h = o · tanh(c)
$ h_t = o_t \odot \tanh(c_t)

reset: Reset gate
How much of the old state the new candidate may look at.
r = σ(W_x x + b_x + W_h h' + b_h)
$ r_t = \sigma(W_x x_t + b_x + W_h h_{t-1} + b_h)

update: Update gate
How much of the old state stays: 1 keeps all of it, 0 takes the candidate.
z = σ(W_x x + b_x + W_h h' + b_h)
$ z_t = \sigma(W_x x_t + b_x + W_h h_{t-1} + b_h)

gru_candidate: Candidate
What the state could become, given the input and as much of the old state as the reset gate lets through.
n = tanh(W_x x + b_x + r · (W_h h' + b_h))
$ n_t = \tanh(W_x x_t + b_x + r_t \odot (W_h h_{t-1} + b_h))

gru_hidden: State
A mixture of candidate and old state, unit by unit, with the update gate as share.
h = (1 − z) · n + z · h'
$ h_t = (1 - z_t) \odot n_t + z_t \odot h_{t-1}

loop: The state after every piece
The same equations with the same weights, again and again, each step going on from the state before it.
h_t = step(x_t, h_{t−1})
$ h_t = \mathrm{step}(x_t, h_{t-1})

both_ways: Both directions side by side
One pass has read what comes before each piece, the other what comes after it.
h = [forward; backward]
$ h_t = [\,\overrightarrow{h}_t; \overleftarrow{h}_t\,]

final: Context vector
The state after the last piece read: all that the encoder hands over of the sentence, however long it is.
h_last
$ h_{\text{last}}

final_both: Context vector
The last states of both directions: one has read to the end of the sentence, the other to its beginning.
[forward at the last piece; backward at the first]
$ [\,\overrightarrow{h}_S; \overleftarrow{h}_1\,]

final_cell: Context vector: the long memory
The memory behind the state is handed over too.
c_last
$ c_{\text{last}}

bridge: Bridge to the decoder
A learned map turns the encoder's last state into the decoder's first.
s_0 = tanh(W h_last + b)
$ s_0 = \tanh(W h_{\text{last}} + b)

bridge_cell: Bridge for the long memory
A learned map turns the encoder's last memory into the decoder's first.
c_0 = W c_last + b
$ c_0 = W c_{\text{last}} + b

annotations: Annotations
A learned map makes of every state what the decoder will look at.
a = tanh(W h + b)
$ a_s = \tanh(W h_s + b)

mean_states: Mean of all states
The average of what the encoder says of every piece: where the decoder begins from.
m = mean_s h_s
$ m = \frac{1}{S} \sum_s h_s

bridge_mean: Bridge to the decoder
A learned map turns the mean of the encoder's states into the decoder's first state.
s_0 = tanh(W m + b)
$ s_0 = \tanh(W m + b)

bridge_mean_cell: Bridge for the long memory
A learned map turns the mean of the encoder's states into the decoder's first memory.
c_0 = W m + b

with_found: Input of the second layer
The new state and what it found in the source, side by side.
[s; c]
$ [\,s_t; c_t\,]

with_context: Input of the cell (Bahdanau)
The piece read last and the context, side by side, go into the cell.
[y; c]
$ [\,y_{t-1}; c_t\,]

with_fed: Input of the cell (input feeding)
The piece read last and the attentional state of the step before: so earlier choices are known.
[y; s̃']
$ [\,y_{t-1}; \tilde{s}_{t-1}\,]

readout: Readout
The new state, the context and the piece read last together decide on the next word.
o = tanh(W [s; c; y] + b)
$ o_t = \tanh(W [\,s_t; c_t; y_{t-1}\,] + b)

combine: Attentional state (Luong)
Context and state together, through a learned map.
s̃ = tanh(W_c [c; s])
$ \tilde{s}_t = \tanh(W_c [\,c_t; s_t\,])

# The end

mean_pool: Mean of all states
One vector for the whole text: the average of its states.
h = mean_s h_s
$ h = \frac{1}{S} \sum_s h_s

max_pool: Largest of all states
One vector for the whole text: each feature's largest value anywhere in it.
h = max_s h_s
$ h = \max_s h_s

logits: Output layer
One score for every word there is: how well the features fit the word's own vector.
z = W x + b

probabilities: Softmax: the probabilities
Scores become probabilities of all words, which sum to 1. Shown are the most probable.
p = exp(z) / Σ exp(z)
$ p_w = \frac{\exp z_w}{\sum_{w'} \exp z_{w'}}

probability: Probability of the word written
The entry of the word that stands in the output.
p(y)
$ p(y_t \mid y_{<t}, x)

# Where another task says it otherwise: a labeller scores labels, a language model goes on with its own text

label final: The last state
The state after the last piece read: one vector for the whole text, however long it is.
h_last
$ h_{\text{last}}

label final_both: The last states of both directions
One direction has read to the end of the text, the other to its beginning: one vector for all of it.
[forward at the last piece; backward at the first]
$ [\,\overrightarrow{h}_S; \overleftarrow{h}_1\,]

label logits: Output layer
One score for every label there is: how well the features fit the label's own vector.
z = W x + b

label probabilities: Softmax: the probabilities
Scores become probabilities of all labels, which sum to 1. Shown are the most probable.
p = exp(z) / Σ exp(z)
$ p_l = \frac{\exp z_l}{\sum_{l'} \exp z_{l'}}

label probability: Probability of the label given
The entry of the label that was chosen.
p(label)
$ p(y \mid x)

language probability: Probability of the next word
The entry of the word that stands next in the text.
p(y)
$ p(y_t \mid y_{<t})
"""


def _parsed(text: str) -> dict[str, Prose]:
    found = {}
    for block in text.strip().split("\n\n"):
        if block.startswith("#"):
            continue
        said, _, tex = block.partition("\n$ ")
        head, *idea, formula = said.split("\n")
        kind, _, title = head.partition(": ")
        found[kind] = (title, " ".join(idea), formula, tex.replace("\n", " ") or formula)
    return found


PROSE = _parsed(_TEXT)  # by the kind of a step, some behind the name of a task


def prose_of(kind: str, task: str) -> Prose:
    """What a step is for, in the words of a task."""
    return PROSE.get(f"{task} {kind}") or PROSE[kind]
