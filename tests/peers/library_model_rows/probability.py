"""tensorflow-probability: distributions, bijectors, samplers and processes behind signatures."""
import numpy as np

from library_model_rows.rows import stranger


def probability(name, seeded=False):
    """The function gets (tf, tfp, x) and returns the outputs of a signature of `x`, float32 [?, 3]; with `seeded` of (x, seed) int32 [2]."""
    def add(function):
        @stranger("tensorflow-probability tf_keras", "tfp_" + name)
        def build(path):
            import tensorflow as tf
            import tensorflow_probability as tfp
            m = tf.Module()
            spec = [tf.TensorSpec([None, 3], tf.float32, name="x")] + ([tf.TensorSpec([2], tf.int32, name="seed")] if seeded else [])
            m.serve = tf.function(lambda *a: function(tf, tfp, *a), input_signature=spec)
            tf.saved_model.save(m, str(path), signatures={"serving_default": m.serve})
            x = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3)).astype(np.float32)
            return [{"x": x, "seed": np.array([s, 2], np.int32)} if seeded else {"x": x} for s in (1, 2)]
        return function
    return add


@probability("densities")
def densities(tf, tfp, x):
    d = tfp.distributions
    every = dict(normal=d.Normal(0.0, x), student=d.StudentT(3.0, 0.0, x), gamma=d.Gamma(2.0, x), beta=d.Beta(2.0, 1.0 + x), laplace=d.Laplace(0.0, x), cauchy=d.Cauchy(0.0, x), gumbel=d.Gumbel(0.0, x),
                 lognormal=d.LogNormal(0.0, x), poisson=d.Poisson(x), geometric=d.Geometric(probs=x), binomial=d.Binomial(3.0, probs=x), truncated=d.TruncatedNormal(0.0, x, -1.0, 1.0),
                 kumaraswamy=d.Kumaraswamy(2.0, 1.0 + x), pareto=d.Pareto(2.0, x), weibull=d.Weibull(2.0, x), von_mises=d.VonMises(0.0, x), half=d.HalfNormal(x), inverse=d.InverseGamma(2.0, x),
                 uniform=d.Uniform(-1.0, 1.0 + x), logistic=d.Logistic(0.0, x), negative=d.NegativeBinomial(3.0, probs=x), johnson=d.JohnsonSU(0.1, 1.1, 0.0, x), skew=d.TwoPieceNormal(0.0, x, 1.2))
    return {k: v.log_prob(tf.ones_like(x) * (1.0 if k in ("poisson", "geometric", "binomial", "negative") else 0.7 if k != "pareto" else 1.5)) for k, v in every.items()} | {
        k + "_cdf": v.cdf(tf.ones_like(x) * 0.7) for k, v in every.items() if k not in ("geometric",)} | {k + "_entropy": v.entropy() for k, v in every.items() if k in ("normal", "beta", "gamma", "laplace", "von_mises")}


@probability("multivariate")
def multivariate(tf, tfp, x):
    d = tfp.distributions
    scale = tf.linalg.diag(x) + 0.1 * tf.linalg.band_part(tf.ones([3, 3]), -1, 0)
    full = d.MultivariateNormalTriL(x, scale)
    mixture = d.MixtureSameFamily(d.Categorical(logits=x), d.Normal(tf.stack([x, x + 1, x * 2], -1)[:, 0], 1.0))
    return {"full": full.log_prob(x * 2), "kl": tfp.distributions.kl_divergence(full, d.MultivariateNormalDiag(x, x)), "mixture": mixture.log_prob(tf.constant(0.3)), "mean": mixture.mean(),
            "dirichlet": d.Dirichlet(x + 1).log_prob(x / tf.reduce_sum(x, -1, keepdims=True)), "wishart": d.WishartTriL(5, scale).log_prob(tf.matmul(scale, scale, transpose_b=True)),
            "categorical": d.OneHotCategorical(logits=x).entropy(), "lkj": d.LKJ(3, 1.5).log_prob(tf.eye(3)), "independent": d.Independent(d.Bernoulli(logits=x), 1).log_prob(tf.ones_like(x)),
            "hmm": d.HiddenMarkovModel(d.Categorical(probs=[0.3, 0.7]), d.Categorical(probs=[[0.6, 0.4], [0.1, 0.9]]), d.Normal([0.0, 1.0], 1.0), 3).log_prob(x),
            "viterbi": d.HiddenMarkovModel(d.Categorical(probs=[0.3, 0.7]), d.Categorical(probs=[[0.6, 0.4], [0.1, 0.9]]), d.Normal([0.0, 1.0], 1.0), 3).posterior_mode(x)}


@probability("bijectors")
def bijectors(tf, tfp, x):
    b = tfp.bijectors
    every = dict(exp=b.Exp(), softplus=b.Softplus(), sigmoid=b.Sigmoid(), chain=b.Chain([b.Shift(1.0), b.Scale(2.0), b.Tanh()]), spline=b.RationalQuadraticSpline([0.5, 0.5], [0.4, 0.6], [1.1], range_min=0.0),
                 centered=b.SoftmaxCentered(), triangular=b.FillTriangular(), ordered=b.Ascending(), permute=b.Permute([2, 0, 1]), weibull=b.WeibullCDF(2.0, 1.0), power=b.PowerTransform(0.3), sinh=b.SinhArcsinh(0.2, 1.1))
    out = {k: v.forward(x) for k, v in every.items()}
    out |= {k + "_back": v.inverse(v.forward(x)) for k, v in every.items()}
    return out | {k + "_jacobian": v.forward_log_det_jacobian(x, 1) for k, v in every.items() if k not in ("triangular",)}


@probability("flows", seeded=True)
def flows(tf, tfp, x, seed):
    d, b = tfp.distributions, tfp.bijectors
    shift = lambda v, n, **_: (tf.tanh(v[..., :1]) * tf.ones([n]), 0.1 * tf.ones([n]))
    flow = d.TransformedDistribution(d.MultivariateNormalDiag(tf.zeros(3)), b.RealNVP(1, shift_and_log_scale_fn=shift))
    return {"sample": flow.sample(2, seed=seed), "log_prob": flow.log_prob(x)}


@probability("samples", seeded=True)
def samples(tf, tfp, x, seed):
    d = tfp.distributions
    every = dict(normal=d.Normal(0.0, x), gamma=d.Gamma(2.0, x), beta=d.Beta(2.0, 1.0 + x), student=d.StudentT(3.0, 0.0, x), poisson=d.Poisson(x * 5), categorical=d.Categorical(logits=x),
                 multinomial=d.Multinomial(5.0, probs=x / tf.reduce_sum(x, -1, keepdims=True)), dirichlet=d.Dirichlet(x + 1), truncated=d.TruncatedNormal(0.0, x, -1.0, 1.0), von_mises=d.VonMises(0.0, x),
                 binomial=d.Binomial(5.0, probs=x), gumbel=d.Gumbel(0.0, x), lkj=d.LKJ(3, 1.5), relaxed=d.RelaxedOneHotCategorical(0.5, logits=x), zipf=d.Zipf(2.0 + x))
    return {k: v.sample(2, seed=seed) for k, v in every.items()}


@probability("mcmc", seeded=True)
def mcmc(tf, tfp, x, seed):
    target = lambda v: -0.5 * tf.reduce_sum((v - x) ** 2, -1)
    kernel = tfp.mcmc.HamiltonianMonteCarlo(target, step_size=0.1, num_leapfrog_steps=2)
    nuts = tfp.mcmc.sample_chain(2, tf.zeros_like(x), kernel=tfp.mcmc.NoUTurnSampler(target, 0.2, max_tree_depth=3), num_burnin_steps=1, trace_fn=None, seed=seed)
    return {"hmc": tfp.mcmc.sample_chain(4, tf.zeros_like(x), kernel=kernel, num_burnin_steps=2, trace_fn=None, seed=seed), "nuts": nuts}


@probability("processes")
def processes(tf, tfp, x):
    k = tfp.math.psd_kernels
    points = tf.constant([[0.0], [0.5], [1.0]])
    regression = tfp.distributions.GaussianProcessRegressionModel(k.MaternThreeHalves(1.1, 0.7), [[0.2], [0.8]], points, x[0], 0.1)
    level = tfp.sts.LocalLinearTrend(observed_time_series=[1.0, 2.0, 2.5, 3.0])
    model = level.make_state_space_model(3, [0.1, 0.2])
    return {"mean": regression.mean(), "deviation": regression.stddev(), "log_prob": model.log_prob(x[..., None]), "filtered": model.posterior_marginals(x[..., None])[0],
            "ode": tfp.math.ode.DormandPrince(rtol=1e-3).solve(lambda t, y: -y * t, 0.0, x, [1.0, 2.0]).states, "minimum": tfp.optimizer.lbfgs_minimize(lambda v: tfp.math.value_and_gradient(
                lambda w: tf.reduce_sum((w - x[0]) ** 2), v), tf.zeros([3]), max_iterations=5).position, "quantiles": tfp.stats.percentile(x, [25.0, 75.0]), "interpolated": tfp.math.interp_regular_1d_grid(x, 0.0, 1.0, [0.0, 1.0, 4.0]),
            "root": tfp.math.find_root_chandrupatla(lambda v: v ** 2 - x, 0.0, 2.0).estimated_root, "special": tfp.math.lambertw(x), "owens": tfp.math.owens_t(x, x), "lu": tfp.math.lu_solve(*tf.linalg.lu(tf.linalg.diag(x)), x[..., None])}


@stranger("tensorflow-probability tf_keras", "tfp_layers")
def layers(path):
    import tensorflow as tf
    import tensorflow_probability as tfp
    import tf_keras
    model = tf_keras.Sequential([tf_keras.layers.Dense(6, input_shape=(3,)), tfp.layers.DenseFlipout(5), tf_keras.layers.Dense(4), tfp.layers.DistributionLambda(
        lambda t: tfp.distributions.Normal(t[..., :2], 1e-3 + tf.math.softplus(t[..., 2:])), convert_to_tensor_fn=tfp.distributions.Distribution.mean)])
    model.save(str(path), save_format="tf")
    return None
