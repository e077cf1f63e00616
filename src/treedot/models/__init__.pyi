from treedot.models import explain as explain
from treedot.models.dual_linear_svc import DualLinearSVC as DualLinearSVC
from treedot.models.kernel_transformer import KernelTransformer as KernelTransformer
from treedot.models.linear_model import LinearModel as LinearModel
from treedot.models.pair_transformer import PairTransformer as PairTransformer
from treedot.models.tree_classifier import TreeClassifier as TreeClassifier
from treedot.models.tree_metric import TreeMetric as TreeMetric
from treedot.models.tree_regressor import TreeRegressor as TreeRegressor
