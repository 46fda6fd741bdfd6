/** The generator's theme, with the looks of our pictures. */
import theme from 'vitepress/theme';
import './style.css';

export default theme;
